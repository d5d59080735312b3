//! What an action does and how it is undone, in Simplified Chinese. Commands and what people wrote stay as they are.

use super::sentences::ActTexts;
use super::words_chinese::{no_start, span, starter};
use crate::admin::actions::{
    ActionTexts, MarkDoneTexts, PauseTexts, ResetTexts, ResumeTexts, TriggerTexts, UnlockTexts,
};

/// Simplified Chinese.
pub(super) const ACTIONS: ActionTexts = ActionTexts {
    and: "；",
    reset: ResetTexts {
        counts: |used| match used {
            0 => "时间槽没有计入次数的尝试".to_owned(),
            used => format!("{used} 次尝试不再计数"),
        },
        no_longer_done: "时间槽不再是已完成状态",
        runs_when_due: "除非届时任务已暂停，到调度时间时节点会运行该时间槽",
        runs_again: "除非任务已暂停，节点会在几秒内再次运行该时间槽",
        not_started: |why, trigger| format!("没有节点会自动运行该时间槽：{why}；如需现在运行，请执行：{trigger}"),
        by_command: |end, trigger| format!("时间槽已于 {end} 结束；如需现在运行，请执行：{trigger}"),
        starter,
        when: |starts| format!("待{starts}时，该时间槽才会运行"),
        by_nobody: |end| format!("时间槽已于 {end} 结束，不会再有任何运行"),
        needless: "该时间槽还没有任何记录",
        undo: |mark| format!("无法撤销；如需阻止节点运行该时间槽，请执行：{mark}"),
    },
    unlock: UnlockTexts {
        effect: |attempt, node, follows| format!("节点 {node} 上的第 {attempt} 次尝试将失去租约，{follows}"),
        may_start: "除非任务已暂停，其他节点可以启动该时间槽",
        none_left: "尝试次数已用尽：除非重置，不会再有节点启动该时间槽",
        not_started: |why| format!("没有节点会自动启动该时间槽：{why}"),
        over: "时间槽已结束，不会再有节点启动它",
        no_effect: "没有节点会失去租约",
        needless: "没有节点持有租约",
        undo: |node| {
            let node = node.map(|node| format!("节点 {node} 上的")).unwrap_or_default();
            format!("无法撤销；如果{node}命令仍在运行，请将其停止：两次运行可能重叠")
        },
    },
    no_start,
    mark_done: MarkDoneTexts {
        effect: "时间槽视为已完成，不再有节点运行它", needless: "时间槽已经完成"
    },
    trigger: TriggerTexts {
        here: "在本机上",
        on: |node| format!("在节点 {node} 上"),
        effect: |place, is_past| {
            let over = if is_past { "时间槽已结束；" } else { "" };
            format!("{over}命令将立即{place}运行")
        },
        after_reset: |effect| format!("已用的尝试不再计数；{effect}"),
        undo: |again| format!("无法撤销；如需再次运行该时间槽，请执行：{again}"),
    },
    pause: PauseTexts {
        effect: |until| match until {
            Some((until, left)) => format!("{until} 之前（还有{}）不会启动该任务的任何时间槽", span(left)),
            None => "恢复任务之前，不会启动该任务的任何时间槽".to_owned(),
        },
        replaces: |who, host| format!("这将取代 {who}（{host}）设置的暂停"),
        needless: "任务已按此方式暂停",
    },
    resume: ResumeTexts { effect: "该任务的时间槽会重新启动", needless: "任务没有暂停" },
};

/// What the forms say around that.
pub(super) const FORMS: ActTexts = ActTexts {
    label: |verb| match verb {
        "reset" | "retry" => "重新运行…",
        "unlock" => "解锁…",
        "mark-done" => "标记为已完成…",
        "trigger" => "立即运行…",
        "pause" => "暂停…",
        "resume" => "恢复…",
        _ => "执行…",
    },
    heading: |verb, what| {
        let verb = match verb {
            "reset" | "retry" => "重新运行",
            "unlock" => "解锁",
            "mark-done" => "标记为已完成",
            "trigger" => "立即运行",
            "pause" => "暂停",
            "resume" => "恢复",
            other => other,
        };
        format!("{verb}：{what}")
    },
    effect: "将会发生什么",
    undo: "如何撤销",
    command: "终端中的等价命令",
    reason: "原因",
    reason_required: "必填；与您的名字一起记录",
    reason_optional: "与您的名字一起记录",
    confirm: |job| format!("输入 {job} 以确认"),
    until: "直到",
    until_hint: "30m、2h 或 2026-11-21T18:00:00Z 这样的时间；留空则直到手动恢复",
    back: "返回",
    off_away: "存储不可用时无法执行操作。",
    needless: "无需执行：",
    refused: "现在无法执行：",
    audited: |who| format!("操作人将记录为 {who}。"),
    changed: "时间槽的状态在此期间已改变。下面是现在的状态；您输入的内容已保留。",
};
