//! The scripts of a quorum. A script whose answer is counted also tells for how long the server has kept its data, and the
//! longest lease that it knows of.

use std::sync::LazyLock;

use crate::store::redis::script::Script;

/// `age.lua`, and the part as the body of one function. `lease` is where its arguments have the lease's TTL.
macro_rules! counted {
    ($lease:literal, $part:literal) => {
        LazyLock::new(|| {
            Script::new(concat!(
                "local LEASE = tonumber(ARGV[",
                $lease,
                "])\n",
                include_str!("../lua/prelude.lua"),
                include_str!("lua/age.lua"),
                include_str!("lua/begin.lua"),
                include_str!("../lua/slot.lua"),
                include_str!("../lua/borrowed.lua"),
                include_str!($part),
                include_str!("lua/end.lua")
            ))
        })
    };
}

macro_rules! plain {
    ($part:literal) => {
        LazyLock::new(|| {
            Script::new(concat!(
                include_str!("../lua/prelude.lua"),
                include_str!("../lua/slot.lua"),
                include_str!("../lua/borrowed.lua"),
                include_str!($part)
            ))
        })
    };
}

pub(super) static RESERVE: LazyLock<Script> = counted!("#ARGV - 5", "lua/reserve.lua");
pub(super) static GRANT: LazyLock<Script> = counted!("#ARGV - 6", "lua/grant.lua");
pub(super) static RENEW: LazyLock<Script> = counted!("8", "../lua/renew.lua");
pub(super) static BURN: LazyLock<Script> = plain!("lua/burn.lua");
pub(super) static UNDO: LazyLock<Script> = plain!("lua/undo.lua");
pub(super) static HEAL: LazyLock<Script> = plain!("lua/heal.lua");
pub(super) static VERDICT: LazyLock<Script> = plain!("lua/verdict.lua");
