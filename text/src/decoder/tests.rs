use super::*;

fn byte_state(context: &[u8]) -> ByteState {
    let mut state = ByteState {
        bytes: context.to_vec(),
        context: 0,
    };
    state.end_context();
    state
}

/// Gives out `bytes` one at a time and returns the increments.
fn feed_bytes(state: &mut ByteState, bytes: &[u8]) -> Vec<String> {
    let mut increments = Vec::new();
    for &byte in bytes {
        state.bytes.push(byte);
        let mut out = String::new();
        state.take(false, &mut out);
        increments.push(out);
    }
    let mut out = String::new();
    state.finish(&mut out);
    increments.push(out);
    increments
}

fn piece_kind() -> DecoderKind {
    let replace = vec![("▁".to_owned(), " ".to_owned())];
    DecoderKind::Pieces {
        replace,
        byte_fallback: true,
        strip_left: 1,
    }
}

fn feed_pieces(state: &mut PieceState, tokens: &[&str]) -> Vec<String> {
    let mut increments = Vec::new();
    for token in tokens {
        state.absorb((*token).to_owned(), &piece_kind());
        let mut out = String::new();
        state.take(false, &mut out);
        increments.push(out);
    }
    let mut out = String::new();
    state.finish(&mut out);
    increments.push(out);
    increments
}

#[test]
fn the_byte_alphabet_is_that_of_gpt2() {
    let mut seen = [false; 256];
    for code in 0..0x200u32 {
        if let Some(byte) = char::from_u32(code).and_then(byte_of) {
            assert!(!seen[byte as usize], "byte {byte} twice");
            seen[byte as usize] = true;
        }
    }
    assert!(seen.iter().all(|&s| s));
    assert_eq!(byte_of('Ġ'), Some(b' '));
    assert_eq!(byte_of('Ċ'), Some(b'\n'));
    assert_eq!(byte_of('Ń'), Some(0xad));
}

#[test]
fn bytes_wait_for_their_character() {
    let increments = feed_bytes(&mut byte_state(b""), "a😀é".as_bytes());
    assert_eq!(increments, ["a", "", "", "", "😀", "", "é", ""]);
}

#[test]
fn every_division_of_a_byte_string_joins_to_the_lossy_text() {
    let alphabet = [
        0x61, 0x80, 0xc3, 0xa9, 0xe4, 0xbd, 0xa0, 0xf0, 0x9f, 0xff, 0xed,
    ];
    for code in 0..alphabet.len().pow(5) {
        let mut rest = code;
        let mut bytes = Vec::new();
        for _ in 0..5 {
            bytes.push(alphabet[rest % alphabet.len()]);
            rest /= alphabet.len();
        }
        let joined = feed_bytes(&mut byte_state(b""), &bytes).concat();
        assert_eq!(joined, String::from_utf8_lossy(&bytes), "{bytes:x?}");
    }
}

#[test]
fn a_character_begun_by_the_prompt_is_completed() {
    let prompt = &"x你".as_bytes()[..3];
    assert_eq!(
        feed_bytes(&mut byte_state(prompt), &[0xa0, b'b']),
        ["你", "b", ""]
    );
    assert_eq!(feed_bytes(&mut byte_state(prompt), b"b"), ["b", ""]);
    assert_eq!(feed_bytes(&mut byte_state(prompt), b""), [""]);
}

#[test]
fn pieces_strip_the_first_space_only() {
    let mut state = PieceState {
        strip_left: 1,
        ..PieceState::default()
    };
    assert_eq!(
        feed_pieces(&mut state, &["▁Once", "▁upon", "▁", "a"]).concat(),
        "Once upon a"
    );
    let mut state = PieceState {
        strip_left: 1,
        ..PieceState::default()
    };
    state.absorb("▁prompt".to_owned(), &piece_kind());
    state.end_context();
    assert_eq!(feed_pieces(&mut state, &["▁Once"]).concat(), " Once");
}

#[test]
fn byte_tokens_wait_for_their_character() {
    let mut state = PieceState::default();
    let tokens = [
        "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xC3>", "x", "<0xFF>", "<0xC3>", "<0xA9>",
    ];
    let increments = feed_pieces(&mut state, &tokens);
    assert_eq!(increments[..5], ["", "", "", "😀", ""]);
    // After a byte that cannot be, the rest of the run is broken too.
    assert_eq!(increments.concat(), "😀\u{fffd}x\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn a_run_begun_by_the_prompt_is_completed() {
    let mut state = PieceState::default();
    state.absorb("<0xC3>".to_owned(), &piece_kind());
    state.end_context();
    assert_eq!(feed_pieces(&mut state, &["<0xA9>", "x"]).concat(), "éx");
    let mut state = PieceState::default();
    state.absorb("<0xC3>".to_owned(), &piece_kind());
    state.end_context();
    assert_eq!(feed_pieces(&mut state, &["x"]).concat(), "x");
}

#[test]
fn only_two_digit_bytes_are_byte_tokens() {
    assert_eq!(byte_token("<0x0A>"), Some(10));
    assert_eq!(byte_token("<0xA>"), None);
    assert_eq!(byte_token("<0x00A>"), None);
    assert_eq!(byte_token("0x0A"), None);
}
