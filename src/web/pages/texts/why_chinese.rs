//! Why a slot ran or did not, in Simplified Chinese. Commands and what people wrote stay as they are.

use super::words_chinese::{no_start, span, starter};
use crate::admin::why::{AttemptReasons, ClaimObstacle, ClaimReasons, SlotReasons, StarterReasons, WhyTexts};
use crate::slot::{Outcome, Overlap};
use crate::store::JobOrigin;

/// Simplified Chinese.
pub(super) const WHY: WhyTexts = WhyTexts {
    span,
    and: "；",
    slot: SLOT,
    attempt: AttemptReasons {
        none: "没有尝试记录",
        lost: |node, attempt, at, doubt| {
            let lost = if doubt { "未能及时续约" } else { "没有报告结果" };
            format!("节点 {node} 在 {at} 认领了第 {attempt} 次尝试，但{lost}")
        },
        running: |attempt, node| format!("节点 {node} 上的第 {attempt} 次尝试正在运行"),
        given_back: |attempt, node, at, why| {
            let at = at.map(|at| format!("在 {at} ")).unwrap_or_default();
            format!("节点 {node} 上的第 {attempt} 次尝试{at}已退还{}", reason(why.unwrap_or_default()))
        },
        ended: |attempt, node, how| format!("节点 {node} 上的第 {attempt} 次尝试结束：{how}"),
        cause: |message| format!("：{message}"),
        ending: |record, run| match (record.outcome_of(run), run.exit_code, run.signal) {
            (None, _, _) => "运行中".to_owned(),
            (Some(Outcome::Failure), Some(code), _) => format!("退出码 {code}"),
            (Some(Outcome::Killed), _, Some(signal)) => format!("信号 {signal}"),
            (Some(outcome), _, _) => ended(outcome).to_owned(),
        },
    },
    claim: ClaimReasons {
        kept: |nodes, what| {
            let what = match what {
                ClaimObstacle::Blocked => "发现该任务的另一个时间槽仍在运行",
                ClaimObstacle::Paused => "发现任务已暂停",
                ClaimObstacle::TooLate => "来得太晚：已过启动期限",
                ClaimObstacle::Shed => "没有余力：命令启动之前时间槽已结束",
                ClaimObstacle::Early => "认领时按存储的时钟时间槽尚未开始",
                ClaimObstacle::Closed => "认领时按存储的时钟时间槽已结束",
            };
            format!("{}{what}", names(nodes))
        },
        blocker: |slot, node, at, left| {
            format!("：{slot} 由节点 {node} 持有；若不续约，其租约将在{left}后到期（{at}）")
        },
        store_away: |nodes, error| format!("{}无法使用存储（{error}）", names(nodes)),
        only_on: |wanted, nodes| {
            let wanted = wanted.map_or_else(|| "其他标签".to_owned(), |wanted| format!("标签 {wanted}"));
            format!("only_on 要求{wanted}，而{}没有该标签", names(nodes))
        },
    },
    starter: StarterReasons {
        who: starter,
        after_reset: |starts| format!("；重置后，待{starts}时运行"),
        nobody: |origin| match origin {
            JobOrigin::Service => "该任务只在服务中运行，而服务的任何进程都没有请求这个时间槽",
            JobOrigin::File | JobOrigin::Crontab => "该任务只由 crontab 启动，而没有 crontab 在这个时间槽内启动它",
        },
        by_hand: |then| format!("如果仍需要这项工作，请手动完成，然后执行 `{then}`"),
        again: |origin| match origin {
            JobOrigin::Service => "让服务请求该时间槽：下一次请求会运行它",
            JobOrigin::File | JobOrigin::Crontab => "在其中任一机器上手动执行 crontab 中的那一行",
        },
    },
};

const SLOT: SlotReasons = SlotReasons {
    who: |person, host| format!("{person}（{host}）"),
    paused: |who, at, why, left| {
        let until = left.map_or_else(|| "直到任务恢复".to_owned(), |left| format!("还有{left}"));
        let why = if why.is_empty() { String::new() } else { format!("（{why}）") };
        format!("时间槽不会运行：{who}在 {at} 暂停了任务{why}，{until}")
    },
    done: "时间槽已完成",
    marked: |who, at, succeeded| {
        let run = if succeeded { "；重置之前已有一次尝试成功" } else { "，未实际运行" };
        format!("时间槽视为已完成：{who} 在 {at} 将其标记为已完成{run}")
    },
    ran: |node, at, attempt, before, successes, overlap| {
        let after = if before == 0 { String::new() } else { format!("，此前有 {before} 次尝试未成功") };
        let twice = match (successes, overlap) {
            (0 | 1, _) => String::new(),
            (_, Overlap::Sure) => format!("；{successes} 次尝试成功：运行有重叠"),
            (_, Overlap::Possible) => format!("；{successes} 次尝试成功：运行可能有重叠"),
            (_, Overlap::No) => format!("；{successes} 次尝试先后成功"),
        };
        format!("时间槽已运行：节点 {node} 在 {at} 以第 {attempt} 次尝试完成{after}{twice}")
    },
    stood_still: |node, attempt, after, by| {
        format!("第 {attempt} 次尝试在 {after} 至 {by} 之间结束：节点 {node} 当时停顿")
    },
    running: "时间槽正在运行",
    running_on: |node, since, attempt, left| {
        let held = held(node, since);
        format!("时间槽正在运行：{held}，第 {attempt} 次尝试；若不续约，租约将在{left}后到期")
    },
    held_past_end: |node, since, attempt, left, end| {
        let held = held(node, since);
        format!(
            "时间槽已于 {end} 结束，尚未完成：{held}，第 {attempt} 次尝试；该节点仍在运行命令，或已宕机：若不续约，租约将在{left}后到期"
        )
    },
    waits: |waits, node, since| format!("时间槽正在等待 {waits}；{}", held(node, since)),
    waits_for: |locks, ahead, holder| format!("{locks}：前面有 {ahead} 个，持有者为{holder}"),
    deadlock: |ring| {
        let steps: Vec<String> = ring.iter().map(|(who, lock)| format!("{who} 等待 {lock}")).collect();
        format!("死锁：{}，依次排在下一个之后", steps.join("，"))
    },
    holder: |node, label, since| {
        let since = since.map(|since| format!("（自 {since}）")).unwrap_or_default();
        if label.is_empty() { format!("节点 {node}{since}") } else { format!("节点 {node} 上的 {label}{since}") }
    },
    retry_in: |last, wait, starts| {
        let when = starts.map(|starts| format!("，待{starts}时")).unwrap_or_default();
        format!("时间槽尚未完成：{last}；下一次尝试最早在{wait}后开始{when}")
    },
    retry_when: |last, used, of, starts| {
        format!("时间槽尚未完成：{last}；{of} 次尝试已用 {used} 次，下一次尝试待{starts}时开始")
    },
    retry_not: |last, why| format!("时间槽未完成：{last}；没有节点会自动重试：{}", no_start(why)),
    retry_by_nobody: |last| format!("时间槽未完成：{last}，且没有在线节点可以重试"),
    retry: |last, used, of| format!("时间槽尚未完成：{last}；{of} 次尝试已用 {used} 次"),
    failed: |used, last| format!("时间槽失败：{used} 次尝试已全部用尽；{last}"),
    skipped_by: |who, at, why| format!("时间槽已跳过：{who}在 {at} 暂停了任务{}", reason(why)),
    skipped: "时间槽已跳过：任务处于暂停状态",
    is_disabled: "时间槽不会运行：最近登记的配置文件中任务未启用",
    was_disabled: "时间槽没有运行：最近登记的配置文件中任务未启用",
    no_tick: |schedule, over| format!("时间槽{}：调度 {schedule} 在其中没有触发", does_not_run(over)),
    scheduled: |at, wait, nobody| {
        let nobody = if nobody { "，且没有在线节点" } else { "" };
        format!("时间槽尚未运行：调度时间为 {at}，还有{wait}{nobody}")
    },
    starts: |at, wait| format!("时间槽尚未开始：将于 {at} 开始，还有{wait}"),
    not_yet: |why| format!("时间槽尚未运行：{why}"),
    no_node: |late| format!("时间槽没有运行：调度时间已过{late}，且没有在线节点"),
    unclaimed: |late| format!("时间槽尚未运行：调度时间已过{late}，尚无节点认领"),
    orphaned: |over, since| {
        let since =
            since.map(|since| format!("；最后一次在 {since} 或其后一小时内出现在节点的配置文件中")).unwrap_or_default();
        format!("时间槽{}：任何在线节点的配置文件中都没有该任务{since}", does_not_run(over))
    },
    did_not_run: |why, then| format!("时间槽没有运行：{why}{}", followed(then)),
    missed_after: |used, of, end, last, then| {
        format!("时间槽错过：共 {of} 次尝试，第 {used} 次失败，{end} 时间槽结束前没有重试；{last}{}", followed(then))
    },
    no_success: |last, end, then| format!("时间槽没有成功的尝试：{last}；{end} 之前没有开始其他尝试{}", followed(then)),
    not_owed: |over, at| format!("时间槽{}：任务在 {at} 之前无需执行，集群此时才首次得知它", does_not_run(over)),
    never_known: "时间槽没有运行：从未有节点运行过该任务",
    known_later: |at| format!("时间槽没有运行：任务在 {at} 才首次登记"),
    forgotten: |kept| format!("时间槽的情况已无从得知：记录只保留 {kept}"),
    nobody_alive: |last, started| {
        let started = started.map(|started| format!("，下一个节点启动于 {started}")).unwrap_or_default();
        format!("时间槽没有运行：从调度时间到结束都没有节点连接到存储（最后一次心跳 {last}{started}）")
    },
    recorded,
    unheard: |closed| format!("时间槽没有运行：没有在线节点，或节点过载，或节点无法写入决策日志{}", recorded(closed)),
};

const fn ended(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "成功",
        Outcome::Failure => "失败",
        Outcome::Timeout => "超时",
        Outcome::Killed => "被信号终止",
        Outcome::LostLease => "租约丢失",
        Outcome::Crashed => "节点失联",
        Outcome::GivenBack => "已退还",
    }
}

fn held(node: &str, since: Option<&str>) -> String {
    let since = since.map(|since| format!("自 {since} 起")).unwrap_or_default();
    format!("节点 {node} {since}持有租约")
}

fn recorded(closed: Option<(&str, &str)>) -> String {
    closed.map(|(node, at)| format!("；节点 {node} 在 {at} 将其记录为错过")).unwrap_or_default()
}

fn reason(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("：{why}") }
}

fn followed(then: Option<&str>) -> String {
    then.map(|then| format!("；随后{then}")).unwrap_or_default()
}

const fn does_not_run(over: bool) -> &'static str {
    if over { "没有运行" } else { "不会运行" }
}

fn names(names: &[&str]) -> String {
    if names.is_empty() { "没有节点".to_owned() } else { format!("节点 {} ", names.join("、")) }
}
