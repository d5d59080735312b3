//! Zone files (RFC 9636) of made-up zones.

use std::path::Path;

/// Writes the file of a zone whose clocks are so many hours ahead of UTC all year.
pub(crate) fn write(folder: &Path, zone: &str, hours: i32) {
    let block = || {
        let counts = [0_u32, 0, 0, 0, 1, 4].map(u32::to_be_bytes).concat();
        let clock = [&(hours * 3_600).to_be_bytes()[..], &[0, 0], b"ABC\0"].concat();
        [b"TZif2", &[0; 15][..], &counts, &clock].concat()
    };
    let rule = format!("\nABC{}\n", -hours).into_bytes();
    let path = folder.join(zone);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, [block(), block(), rule].concat()).unwrap();
}
