//! For tests: how far the colours of the states are apart, by the values that stand in the stylesheet. CIEDE2000 as in Sharma, Wu and Dalal
//! (2005), deuteranopia as in Machado, Oliveira and Fernandes (2009), contrast as in WCAG 2.2.

use std::collections::BTreeMap;

use crate::web::pages::state::Shown;

const STYLE: &str = include_str!("../assets/cronward.css");

type Rgb = [f64; 3];
type Lab = [f64; 3];

/// The value of each custom property, in light or in dark.
fn properties(dark: bool) -> BTreeMap<String, Rgb> {
    let declarations = STYLE.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": light-dark("));
    let value = |values: &str| {
        let (light, after) = values.trim_end_matches([';', ')']).split_once(", ").unwrap();
        rgb(if dark { after } else { light })
    };
    declarations.map(|(name, values)| (name.to_owned(), value(values))).collect()
}

fn rgb(hex: &str) -> Rgb {
    [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0)
}

fn linear(channel: f64) -> f64 {
    if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
}

fn gamma(channel: f64) -> f64 {
    let channel = channel.clamp(0.0, 1.0);
    if channel <= 0.003_130_8 { channel * 12.92 } else { 1.055 * channel.powf(1.0 / 2.4) - 0.055 }
}

fn times(matrix: [[f64; 3]; 3], of: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum())
}

fn deuteranopic(colour: Rgb) -> Rgb {
    let matrix = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
    times(matrix, colour.map(linear)).map(gamma)
}

fn lab(colour: Rgb) -> Lab {
    let matrix = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175_0],
        [0.019_333_9, 0.119_192_0, 0.950_304_1],
    ];
    let [x, y, z] = times(matrix, colour.map(linear));
    let f = |t: f64| if t > 216.0 / 24_389.0 { t.cbrt() } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 };
    let (x, y, z) = (f(x / 0.950_47), f(y), f(z / 1.088_83));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// CIEDE2000.
fn apart(one: Lab, other: Lab) -> f64 {
    let ([l1, a1, b1], [l2, a2, b2]) = (one, other);
    let mean_c = f64::midpoint(a1.hypot(b1), a2.hypot(b2));
    let g = 0.5 * (1.0 - (mean_c.powi(7) / (mean_c.powi(7) + 25_f64.powi(7))).sqrt());
    let (a1, a2) = (a1 * (1.0 + g), a2 * (1.0 + g));
    let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
    let hue = |a: f64, b: f64| if a == 0.0 && b == 0.0 { 0.0 } else { b.atan2(a).to_degrees().rem_euclid(360.0) };
    let (h1, h2) = (hue(a1, b1), hue(a2, b2));
    let grey = c1 * c2 == 0.0;
    let turn = match h2 - h1 {
        _ if grey => 0.0,
        turn if turn > 180.0 => turn - 360.0,
        turn if turn < -180.0 => turn + 360.0,
        turn => turn,
    };
    let mean_h = match h1 + h2 {
        sum if grey => sum,
        sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
        sum if sum < 360.0 => (sum + 360.0) / 2.0,
        sum => (sum - 360.0) / 2.0,
    };
    let (dl, dc, dh) = (l2 - l1, c2 - c1, 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin());
    let (mean_l, mean_c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(mean_h - 30.0) + 0.24 * cos(2.0 * mean_h) + 0.32 * cos(3.0 * mean_h + 6.0)
        - 0.20 * cos(4.0 * mean_h - 63.0);
    let theta = 30.0 * (-((mean_h - 275.0) / 25.0).powi(2)).exp();
    let rc = 2.0 * (mean_c.powi(7) / (mean_c.powi(7) + 25_f64.powi(7))).sqrt();
    let square = (mean_l - 50.0).powi(2);
    let sl = 1.0 + 0.015 * square / (20.0 + square).sqrt();
    let (sc, sh) = (1.0 + 0.045 * mean_c, 1.0 + 0.015 * mean_c * t);
    let rt = -(2.0 * theta).to_radians().sin() * rc;
    ((dl / sl).powi(2) + (dc / sc).powi(2) + (dh / sh).powi(2) + rt * (dc / sc) * (dh / sh)).sqrt()
}

fn contrast(one: Rgb, other: Rgb) -> f64 {
    let light = |colour: Rgb| times([[0.2126, 0.7152, 0.0722]; 3], colour.map(linear))[0];
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The states that have a colour, and the ground on which those without one stand.
fn colours(dark: bool) -> Vec<(&'static str, Rgb)> {
    let all = properties(dark);
    let states = Shown::ALL.map(Shown::key).into_iter().filter(|key| all.contains_key(*key));
    let colours: Vec<_> = states.chain(["surface"]).map(|key| (key, all[key])).collect();
    assert_eq!(colours.len(), 8, "{colours:?}");
    colours
}

#[test]
fn the_distance_is_that_of_the_published_examples() {
    for (one, other, wanted) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644),
        ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
    ] {
        assert!((apart(one, other) - wanted).abs() < 0.0001, "{one:?} {other:?}: {}", apart(one, other));
    }
}

#[test]
fn no_two_states_look_alike_nor_to_people_with_deuteranopia() {
    for dark in [false, true] {
        let colours = colours(dark);
        for (at, (one, first)) in colours.iter().enumerate() {
            for (other, second) in &colours[at + 1..] {
                let all = apart(lab(*first), lab(*second));
                let some = apart(lab(deuteranopic(*first)), lab(deuteranopic(*second)));
                assert!(all >= 20.0 && some >= 10.0, "{one} and {other}, dark {dark}: {all:.1}, {some:.1}");
            }
        }
    }
}

#[test]
fn what_stands_on_a_colour_can_be_read() {
    for dark in [false, true] {
        let all = properties(dark);
        for (name, ink) in all.iter().filter_map(|(name, ink)| Some((name.strip_suffix("-ink")?, ink))) {
            let contrast = contrast(all[name], *ink);
            assert!(contrast >= 4.5, "{name}, dark {dark}: {contrast:.2}");
        }
        for ink in ["ink", "soft", "accent", "alarm", "warn", "well"] {
            for ground in ["surface", "page", "sunk"] {
                let contrast = contrast(all[ink], all[ground]);
                assert!(contrast >= 4.5, "{ink} on {ground}, dark {dark}: {contrast:.2}");
            }
        }
    }
}

#[test]
fn each_state_has_a_glyph() {
    for state in Shown::ALL {
        let rule = format!("[data-s=\"{}\"]::before {{ content:", state.key());
        assert!(STYLE.contains(&rule), "{rule}");
    }
}
