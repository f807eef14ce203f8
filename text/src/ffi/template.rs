use super::{free, guard, object, put, set_unless_zero, text, Bytes};
use crate::error::Result;
use crate::template::{ChatTemplate, Conversation, Limits};

/// `penstock_conversation`
#[repr(C)]
pub struct RawConversation {
    messages_json: *const u8,
    messages_json_size: usize,
    tools_json: *const u8,
    tools_json_size: usize,
    kwargs_json: *const u8,
    kwargs_json_size: usize,
    add_generation_prompt: i32,
    now_seconds: i64,
    max_input_bytes: usize,
    max_output_bytes: usize,
    max_steps: u64,
}

impl RawConversation {
    unsafe fn read(&self) -> Result<Conversation<'_>> {
        let tools = text("tools", self.tools_json, self.tools_json_size)?;
        let kwargs = text(
            "chat_template_kwargs",
            self.kwargs_json,
            self.kwargs_json_size,
        )?;
        Ok(Conversation {
            messages_json: text("messages", self.messages_json, self.messages_json_size)?,
            tools_json: Some(tools).filter(|json| !json.is_empty()),
            kwargs_json: Some(kwargs).filter(|json| !json.is_empty()),
            add_generation_prompt: self.add_generation_prompt != 0,
            now_seconds: self.now_seconds,
        })
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        set_unless_zero(&mut limits.input_bytes, self.max_input_bytes);
        set_unless_zero(&mut limits.output_bytes, self.max_output_bytes);
        set_unless_zero(&mut limits.steps, self.max_steps);
        limits
    }
}

#[no_mangle]
pub unsafe extern "C" fn penstock_template_compile(
    source: *const u8,
    source_size: usize,
    globals_json: *const u8,
    globals_json_size: usize,
    compiled: *mut *mut ChatTemplate,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let source = text("chat_template", source, source_size)?;
        let globals = text("template globals", globals_json, globals_json_size)?;
        put(
            compiled,
            Box::into_raw(Box::new(ChatTemplate::compile(source, globals)?)),
        )
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_template_free(compiled: *mut ChatTemplate) {
    free(compiled);
}

#[no_mangle]
pub unsafe extern "C" fn penstock_template_render(
    compiled: *const ChatTemplate,
    conversation: *const RawConversation,
    output: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let conversation = object(conversation)?;
        let rendered = object(compiled)?.render(&conversation.read()?, &conversation.limits())?;
        put(output, Bytes::new(rendered))
    })
}
