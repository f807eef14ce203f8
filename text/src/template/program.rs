//! A compiled template whose operators behave as in Python.
//!
//! minijinja's `+`, `~` and loops cannot be replaced from outside, so their instructions are: each
//! becomes a call of a filter whose name no template can spell. All output passes through the
//! environment's formatter, raw text too, so that it is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::machinery::{
    make_string_output, CompiledTemplate, Instruction, Instructions, TemplateConfig, Vm,
    WhitespaceConfig,
};
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error};

/// Filters that the environment must have.
pub const ADD: &str = "+";
pub const CONCAT: &str = "~";
pub const LOOP_OVER: &str = "for";

/// Shown in error messages; the usual name of a template that is not a file.
const NAME: &str = "<string>";
/// "Not in the cache of filters", in minijinja's encoding.
const UNCACHED: u8 = u8::MAX;

pub struct Program {
    // Borrows `source`; dropped before it and never handed out with its 'static lifetime.
    instructions: Instructions<'static>,
    blocks: BTreeMap<&'static str, Instructions<'static>>,
    _source: Arc<str>,
}

impl Program {
    pub fn compile(source: String) -> Result<Self, Error> {
        let source: Arc<str> = source.into();
        // SAFETY: the text lives on the heap, unchanged, for as long as `_source` does.
        let text: &'static str = unsafe { &*Arc::as_ptr(&source) };
        let config = TemplateConfig {
            syntax_config: Default::default(),
            ws_config: WhitespaceConfig {
                keep_trailing_newline: false,
                lstrip_blocks: true,
                trim_blocks: true,
            },
            default_auto_escape: Arc::new(|_| AutoEscape::None),
        };
        let compiled = CompiledTemplate::new(NAME, text, &config)?;
        let blocks = compiled
            .blocks
            .into_iter()
            .map(|(name, block)| (name, pythonic(&block)));
        Ok(Self {
            instructions: pythonic(&compiled.instructions),
            blocks: blocks.collect(),
            _source: source,
        })
    }

    pub fn run(&self, environment: &Environment, root: Value) -> Result<String, Error> {
        let mut text = String::new();
        let mut output = make_string_output(&mut text);
        Vm::new(environment).eval(
            &self.instructions,
            root,
            &self.blocks,
            &mut output,
            AutoEscape::None,
        )?;
        Ok(text)
    }
}

/// The same instructions with our filters in place of operators. Lines and jumps are kept.
fn pythonic<'source>(given: &Instructions<'source>) -> Instructions<'source> {
    let mut position = 0;
    let mut new_index = Vec::new();
    let mut replaced = Vec::new();
    for old in 0..given.len() as u32 {
        let Some(instruction) = given.get(old) else {
            break;
        };
        let group = replacement(instruction);
        new_index.push(position);
        position += group.len() as u32;
        replaced.push((group, given.get_line(old)));
    }
    new_index.push(position);
    let mut made = Instructions::new(given.name(), given.source());
    for (group, line) in replaced {
        for mut instruction in group {
            retarget(&mut instruction, &new_index);
            match line {
                Some(line) => made.add_with_line(instruction, line as u16),
                None => made.add(instruction),
            };
        }
    }
    made
}

fn replacement<'source>(instruction: &Instruction<'source>) -> Vec<Instruction<'source>> {
    let filter = |name, arguments| Instruction::ApplyFilter(name, Some(arguments), UNCACHED);
    match instruction {
        Instruction::Add => vec![filter(ADD, 2)],
        Instruction::StringConcat => vec![filter(CONCAT, 2)],
        Instruction::PushLoop(flags) => vec![filter(LOOP_OVER, 1), Instruction::PushLoop(*flags)],
        Instruction::EmitRaw(text) => {
            vec![
                Instruction::LoadConst(Value::from(*text)),
                Instruction::Emit,
            ]
        }
        other => vec![other.clone()],
    }
}

fn retarget(instruction: &mut Instruction, new_index: &[u32]) {
    match instruction {
        Instruction::Iterate(target)
        | Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::BuildMacro(_, target, _) => {
            if let Some(index) = new_index.get(*target as usize) {
                *target = *index;
            }
        }
        _ => {}
    }
}
