//! `compiler VERB [options]` reads a program from standard input. Its answer goes to standard
//! output with exit status 0; faults of the program go to standard error with exit status 1, each
//! as FILE:LINE:COL: CODE message.

use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    if verb != "simplify" && verb != "compile" {
        eprintln!("expected one of the verbs simplify, compile, got {verb:?}");
        return ExitCode::FAILURE;
    }
    let mut program = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut program) {
        eprintln!("standard input cannot be read: {error}");
        return ExitCode::FAILURE;
    }
    let length = program.len();
    eprintln!("<stdin>:1:1: E000 {verb} of these {length} bytes is not implemented");
    ExitCode::FAILURE
}
