//! The history of a world that broke a promise: shown whole, or, where it is too long for a terminal, its end with the whole in
//! a file. Runs nothing.

use std::path::{Path, PathBuf};

/// Where a history goes that is longer.
const FOLDER: &str = "target/simulate";

/// Prints it, or the last so many lines of it, and says where the whole is. One that cannot be written to its file is printed
/// whole.
pub(crate) fn show(seed: u64, steps: &[String], lines: usize) {
    let rest = steps.len().saturating_sub(lines);
    let whole = if rest > 0 { keep(seed, steps) } else { Ok(PathBuf::new()) };
    let skipped = match whole {
        Ok(file) if rest > 0 => {
            println!("  the whole history, {} steps, is in {}; its end:", steps.len(), file.display());
            rest
        }
        Ok(_) => 0,
        Err(error) => {
            println!("  {FOLDER}: {error}: so here is all of it");
            0
        }
    };
    steps.iter().skip(skipped).for_each(|step| println!("    {step}"));
}

fn keep(seed: u64, steps: &[String]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(FOLDER)?;
    let file = Path::new(FOLDER).join(format!("seed-{seed}.txt"));
    std::fs::write(&file, steps.join("\n") + "\n")?;
    Ok(file)
}
