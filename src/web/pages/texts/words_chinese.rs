//! What several texts in Simplified Chinese have in common: spans of time, states, who starts a job, what a store keeps. No sentence of a page.

use std::time::Duration;

use crate::observe::view::NoStart;
use crate::schedule::{DstEffect, DstNote};
use crate::store::{Capability, JobOrigin, KeptPart, Reach, StoreClock};
use crate::web::pages::state::Shown;

/// A state.
pub(super) const fn state(state: Shown) -> &'static str {
    match state {
        Shown::Done => "已完成",
        Shown::Running => "运行中",
        Shown::Retrying => "重试中",
        Shown::Failed => "失败",
        Shown::Missed => "错过",
        Shown::Skipped => "已跳过",
        Shown::Pending => "待执行",
        Shown::Disabled => "已停用",
        Shown::NotDue => "无调度",
        Shown::Unknown => "未知",
        Shown::Loading => "读取中",
    }
}

/// What a change of the clock does to scheduled times.
pub(super) fn clock_change(note: &DstNote) -> String {
    let (wall, shown) = (note.wall.format("%Y-%m-%d %H:%M:%S"), note.shown.format("%H:%M:%S"));
    match note.effect {
        DstEffect::Shifted => format!("{wall} 不存在（时钟拨快）：改在 {shown} 触发"),
        DstEffect::Skipped => format!("{wall} 不存在（时钟拨快）：不会触发"),
        DstEffect::Repeated => format!("{wall} 会出现两次（时钟拨回 {shown}）：触发两次"),
    }
}

/// Where the definition of a job is.
pub(super) const fn origin(origin: JobOrigin) -> &'static str {
    match origin {
        JobOrigin::File => "jobs.toml",
        JobOrigin::Crontab => "crontab（cronward exec）",
        JobOrigin::Service => "服务",
    }
}

/// What a store keeps of a slot under one name.
pub(super) const fn kept_part(part: KeptPart) -> &'static str {
    match part {
        KeptPart::Mark => "租约、等待或完成标记",
        KeptPart::Attempts => "尝试计数",
        KeptPart::Log => "每次尝试、结论、运维操作",
        KeptPart::Outputs => "每次尝试的输出末尾",
        KeptPart::OutputsBelow => "输出，按前缀查找",
        KeptPart::Decisions => "决策日志",
        KeptPart::DecisionsBelow => "决策日志，按前缀查找",
        KeptPart::Latest => "任务最近的成功与失败",
        KeptPart::Pauses => "所有任务的暂停",
        KeptPart::AllButOutputs => "除输出以外的全部内容，输出在其下",
        KeptPart::Tables => "表 slots、outputs 和 notes",
        KeptPart::PrefixedTables => "表 cronward_slots、cronward_outputs 和 cronward_notes",
        KeptPart::Rows => "行",
    }
}

/// Why no node starts a slot by itself, as the middle of a sentence.
pub(super) const fn no_start(why: NoStart) -> &'static str {
    match why {
        NoStart::Disabled => "任务在配置中已停用",
        NoStart::Orphaned => "没有在线节点的配置文件包含该任务",
        NoStart::NoNode => "配置文件包含该任务的在线节点都没有 only_on 要求的标签",
        NoStart::NoLiveNode => "没有在线节点",
        NoStart::NotDue => "其调度时间早于集群首次得知该任务的时间",
        NoStart::TooLate => "已过启动截止时间",
    }
}

/// Who starts a job that no daemon plans, as the middle of a sentence, with a space where that is Chinese before a Latin word; none for a
/// job of a file.
pub(super) const fn starter(origin: JobOrigin) -> Option<&'static str> {
    match origin {
        JobOrigin::File => None,
        JobOrigin::Crontab => Some(" crontab 再次启动它"),
        JobOrigin::Service => Some("服务再次请求它"),
    }
}

/// With a space before the number: what stands before it is Chinese.
pub(super) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => format!(" {seconds} 秒"),
        120..=7_199 => format!(" {} 分钟", seconds / 60),
        7_200..=172_799 => format!(" {} 小时", seconds / 3_600),
        _ => format!(" {} 天", seconds / 86_400),
    }
}

pub(super) fn capability(store: &Capability) -> String {
    let reach = match store.reach {
        Reach::Process => "仅供单个进程使用",
        Reach::Host => "仅供同一主机上的进程使用",
        Reach::Network => "供网络上的节点共用",
    };
    let clock = match store.clock {
        StoreClock::Server => "以服务器时钟为准",
        StoreClock::Servers => "以多数服务器的时钟为准",
        StoreClock::Host => "以主机时钟为准",
        StoreClock::Node => "时间槽以各节点的时钟为准",
    };
    let wakes = match store.push {
        true => "会唤醒等待的节点".to_owned(),
        false => format!("等待的节点每 {} 查询一次", span(store.poll)),
    };
    let durable = if store.durable { "已确认的写入不会丢失" } else { "已确认的写入可能丢失" };
    let locks = if store.locks { "支持锁" } else { "不支持锁" };
    [reach, clock, &wakes, durable, locks].join(" · ")
}
