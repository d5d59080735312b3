//! The `cronward` command. Everything is in the library's `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A command's keeper is this binary too: it comes before anything that could start a thread.
    if let Some(code) = cronward::exec::shim::main(std::env::args_os()) {
        return code;
    }
    cronward::cli::main()
}
