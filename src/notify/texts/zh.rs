//! 简体中文. Sentences only.

use crate::event::NoticeKind;
use crate::notify::texts::form::Texts;

pub(super) const TEXTS: Texts = Texts {
    failed: "{job}@{slot} 失败：在 {nodes} 上用完 {used}/{max} 次尝试；{how}",
    missed: "{job}@{slot} 错过：时间槽结束时没有成功",
    missed_after: "{job}@{slot} 错过：共 {max} 次尝试，第 {used} 次失败（{how}），时间槽结束前没有重试",
    missed_several: "{job}：从 {first} 到 {slot} 错过 {count} 个时间槽，均未成功",
    late: "{job} 逾期：上次成功的时间槽是 {slot}，alert_after 为 {after}",
    late_never: "{job} 逾期：没有任何成功记录，alert_after 为 {after}",
    overlap: "{job}@{slot}：两次运行可能重叠",
    beside: "另一次运行在节点 {node} 上",
    recovered: "{job} 已恢复；自时间槽 {slot} 起曾失败",
    reminder: "{job} 仍在失败，自时间槽 {slot} 起",
    started: "{job}@{slot} 已启动：第 {number} 次尝试，节点 {node}",
    succeeded: "{job}@{slot} 成功",
    attempt_failed: "{job}@{slot}：第 {number} 次尝试在节点 {node} 上失败；{how}",
    paused: "{job} 已暂停",
    resumed: "{job} 已恢复调度",
    node_silent: "节点 {node} 失联：最后一次心跳 {at}",
    config_rejected: "节点 {node} 拒绝了修改后的配置文件；原有任务继续生效",
    failed_bare: "{job}@{slot} 失败：尝试次数已用完",
    exit: "退出码 {code}",
    signal: "被信号 {code} 终止",
    outcome: "结果为 {outcome}",
    since: "后面的时间槽 {slot} 已于 {at} 完成",
    timeout: "运行超过 {after}，已超时",
    rerun_now: "重新运行：{command}；{end} 之后还需执行：{then}",
    kind,
    output: "输出的最后几行：",
    owner: "负责人：{owner}",
    runbook: "处理手册：{runbook}",
    page: "页面：{page}",
    rerun: "重新运行：{command}",
    look: "查看原因：{command}",
    digest: "{count} 个事件：{kinds}",
    digest_more: "另有 {count} 个",
    test: "这是 cronward 通知渠道 {sink} 的测试；没有发生任何事件。",
};

const fn kind(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Failed => "失败",
        NoticeKind::Missed => "错过",
        NoticeKind::Late => "逾期",
        NoticeKind::Overlap => "重叠",
        NoticeKind::Recovered => "恢复",
        NoticeKind::Reminder => "仍在失败",
        NoticeKind::Started => "启动",
        NoticeKind::Succeeded => "成功",
        NoticeKind::AttemptFailed => "尝试失败",
        NoticeKind::Paused => "暂停",
        NoticeKind::Resumed => "恢复调度",
        NoticeKind::NodeSilent => "节点失联",
        NoticeKind::ConfigRejected => "配置被拒绝",
    }
}
