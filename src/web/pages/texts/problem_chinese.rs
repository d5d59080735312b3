//! Why a request was not answered as it wished, in Simplified Chinese. Commands, settings, and what a store, a library or a person wrote
//! stay as they are.

use super::words_chinese::{self, span};
use crate::admin::lookup::{FARTHEST, SlotRefError};
use crate::admin::words::instant;
use crate::admin::{PauseEndError, UnknownTarget};
use crate::board::{FilterError, known_states};
use crate::job::NameError;
use crate::node::TriggerRefusal;
use crate::slot::SlotKeyError;
use crate::web::detail::{ProblemDetail, listed};
use crate::web::pages::state::Shown;

/// A problem.
pub(super) fn said(detail: &ProblemDetail) -> String {
    let fixed = match detail {
        ProblemDetail::NotFound => "没有这个名称的内容",
        ProblemDetail::NoJob(job) => return format!("没有名为 {job} 的任务"),
        ProblemDetail::Unknown(target) => return unknown(target),
        ProblemDetail::JobName(error) => return job_name(error),
        ProblemDetail::SlotRef(error) => return slot_ref(error),
        ProblemDetail::NoAttempt(slot) => return format!("{slot} 没有这次尝试"),
        ProblemDetail::NoLocks => "此存储不支持锁",
        ProblemDetail::StoreRefusesReads => "存储拒绝本节点：cronward doctor 会指出需要修改什么",
        ProblemDetail::StoreAway { maybe } => {
            return format!("存储没有响应，节点会继续尝试连接{}", perhaps_done(*maybe));
        }
        ProblemDetail::StoreUnusable { error, maybe } => {
            return format!("存储暂时无法使用：{error}；节点会继续尝试{}", perhaps_done(*maybe));
        }
        ProblemDetail::StoreCorrupt { error } => {
            return format!("存储中有不是 cronward 写入的内容：{error}；请用存储自己的客户端查看并移走它");
        }
        ProblemDetail::StoreRefuses { error, maybe } => return format!("存储拒绝：{error}{}", perhaps_done(*maybe)),
        ProblemDetail::PlannerStands => "plan：调度器没有响应",
        ProblemDetail::NotReady(words) => return format!("尚未就绪：{words}"),
        ProblemDetail::Internal(told) => return format!("内部错误：{told}"),
        ProblemDetail::AnswerUnwritten => "无法生成响应",
        ProblemDetail::FiguresUnwritten => "无法生成指标",
        ProblemDetail::PageUnwritten => "无法生成页面",
        ProblemDetail::Late => "处理超过了 10 秒",
        ProblemDetail::LongAddress => "网址最长 2048 字节",
        ProblemDetail::UnknownHost => "本机不认识这个主机名；可用 [http] public_url 添加",
        ProblemDetail::LargeBody => "请求正文最大 16 KiB",
        ProblemDetail::BrokenBody => "请求正文不完整",
        ProblemDetail::WrongMethod => "不能用这种方法请求此地址",
        ProblemDetail::ForNobody => "任何人都不能请求此地址",
        ProblemDetail::NoToken => "请发送令牌：Authorization: Bearer …",
        ProblemDetail::WrongTokens => "来自此地址的错误令牌过多",
        ProblemDetail::OpenTokens => "本机的所有用户都能读取令牌文件，从而可以伪造登录：请对该文件执行 chmod o-r",
        ProblemDetail::NoProxyUser => "代理没有给出用户：其用户请求头缺失、为空、重复、过长或不是文本",
        ProblemDetail::NotTheProxy => "用户只能通过代理访问，而此地址不在 [http.auth.proxy] from 之中",
        ProblemDetail::NoRole => "代理没有给出您的角色：应为 viewer 或 operator，只出现一次",
        ProblemDetail::SmallRole => "您的角色不能执行此操作",
        ProblemDetail::TokenForActions => "执行操作需要令牌：请在 [http.auth] tokens_file 中指定谁可以操作",
        ProblemDetail::ReadOnly => "此端口为只读：[http] read_only = false 允许操作",
        ProblemDetail::NoForm => "请发送表单：Content-Type: application/x-www-form-urlencoded",
        ProblemDetail::NoJson => "请发送 JSON：Content-Type: application/json",
        ProblemDetail::NoOwnHeader => "请发送请求头 X-Cronward: 1，其他网站的页面无法发送它",
        ProblemDetail::UnknownOrigin => "浏览器没有说明请求来自哪个页面",
        ProblemDetail::OtherOrigin => "请求来自其他网站的页面",
        ProblemDetail::OtherLogin => "表单不属于当前登录：请重新打开表单",
        ProblemDetail::Examining => "正在为其他人检查存储：请几秒后重试",
        ProblemDetail::ManyStreams => "已有 64 个事件流：请改为每十秒请求一次 /api/v1/jobs",
        ProblemDetail::Query(error) => return format!("网址中的参数无法识别：{error}"),
        ProblemDetail::NoObject => "请求正文格式不正确：应为一个 JSON 对象",
        ProblemDetail::Body(error) => return format!("请求正文格式不正确：{error}"),
        ProblemDetail::Filter(error) => return format!("q：{}", filter(error)),
        ProblemDetail::PageRange => "page 从 1 开始，per_page 为 1 至 500",
        ProblemDetail::LimitRange => "limit 为 1 至 500",
        ProblemDetail::CountRange => "count 为 1 至 1000",
        ProblemDetail::NoSlotBefore => "before：任务没有包含该时间的时间槽",
        ProblemDetail::Unreadable("before", _) => "before：请写成时间槽的 UTC 开始时间，例如 2026-11-21T14Z",
        ProblemDetail::Unreadable(field, _) => return format!("{field}：请写成时长，例如 24h"),
        ProblemDetail::State(word) => {
            let known = "pending、running、retrying、done、failed、missed、skipped 或 all";
            return format!("state：{word:?} 不是状态，请使用 {known}");
        }
        ProblemDetail::LongSince => "since 最多回溯 31d",
        ProblemDetail::ManySlots => "需要查看的时间槽超过 2400 个：请指定任务，或用 since 缩短时间",
        ProblemDetail::GoWhere => "请使用 /go?at=任务 或 /go?at=任务@时间槽",
        ProblemDetail::NoReason => "此操作需要填写原因",
        ProblemDetail::NotConfirmed => "请输入任务名称以确认",
        ProblemDetail::PauseEnd(error) => return pause_end(error),
        ProblemDetail::NotAsExpected { target, is, expected } => {
            return match is {
                Some(is) => format!("{target} 的状态是“{}”，而不是“{}”", state(is), state(expected)),
                None => format!("{target} 是任务，没有状态，不能是“{}”", state(expected)),
            };
        }
        ProblemDetail::Held(held) => {
            let (target, node, attempt) = (&held.target, &held.by.node, held.by.attempt);
            let (left, unlock) = (span(held.remaining), &held.unlock);
            return format!(
                "{target} 由节点 {node} 以第 {attempt} 次尝试持有，若不续约，租约将在{left}后到期：请等待，或用 `{unlock}` 释放租约"
            );
        }
        ProblemDetail::NotBegun(slot) => {
            let (job, key, start) = (slot.0.job(), slot.0.key(), slot.start());
            return format!("{job} 的时间槽 {key} 将于 {start} 开始；只能运行当前和过去的时间槽");
        }
        ProblemDetail::Paused(job) => return format!("{job} 已暂停：请先恢复任务"),
        ProblemDetail::Done(slot) => return format!("{slot} 已完成：如需再次运行，请先重置"),
        ProblemDetail::NoAttemptsLeft(slot) => return format!("{slot} 的尝试次数已用完：请先重置"),
        ProblemDetail::Ended(slot) => return format!("{slot} 已结束：如仍要运行，请使用 past"),
        ProblemDetail::JustFailed(slot) => return format!("{slot} 刚刚失败，正在等待重试：如需结束等待，请重置"),
        ProblemDetail::NodeRefuses { node, why, others } => {
            let others = match others.as_deref() {
                None => String::new(),
                Some([]) => "；没有其他在线节点可以运行该任务".to_owned(),
                Some(nodes) => format!("；以下节点可以运行该任务，请向其中之一请求：{}", listed(nodes, "、")),
            };
            return format!("{node}：{}{others}", refusal(*why));
        }
    };
    fixed.to_owned()
}

/// Why a filter cannot be read.
pub(super) fn filter(error: &FilterError) -> String {
    match error {
        FilterError::TooLong => "筛选条件最长 512 字节，最多 16 项".to_owned(),
        FilterError::OpenQuote => "筛选条件中的引号没有结束：请在最后一个词之后加上 \"".to_owned(),
        FilterError::Field(field) => {
            format!("不能按 {field:?} 筛选：请使用 job:、owner:、tag:、node: 或 state:，或名称中的文字")
        }
        FilterError::State(word) => format!("{word:?} 不是状态：请使用 {}", known_states("、")),
        FilterError::Empty(what) => format!("筛选条件中 {what} 之后没有内容"),
    }
}

fn unknown(target: &UnknownTarget) -> String {
    let at = |location: &Option<String>| location.as_ref().map(|at| format!("存储 {at} 中")).unwrap_or_default();
    match target {
        UnknownTarget::OnlyJob { job, location } => {
            format!("{}没有任务 {job}，也没有任何其他任务；请用 --config 指定任务文件", at(location))
        }
        UnknownTarget::MisspeltJob { job, nearest } => format!("没有任务 {job}：是否指 {nearest}？"),
        UnknownTarget::Job { job, location, listing } => {
            format!("{}没有任务 {job}：`{listing}` 列出已有的任务", at(location))
        }
        UnknownTarget::FirstSlot(job) => format!("任务 {job} 还没有时间槽：调度尚未触发过"),
        UnknownTarget::Slot { job, key, within: Some(slot) } => {
            format!("{job} 没有从 {key} 开始的时间槽：该时间属于 {slot}")
        }
        UnknownTarget::Slot { job, key, within: None } => {
            format!("{job} 没有从 {key} 开始的时间槽，也没有包含该时间的时间槽")
        }
        UnknownTarget::OldSlot { job, steps, found, newest } => {
            format!("{job}@-{steps} 不是时间槽：{newest} 之前只有 {found} 个时间槽")
        }
    }
}

fn job_name(error: &NameError) -> String {
    let rule = "1 至 52 个字符，可用 a-z、0-9、“.”、“_”和“-”，以字母或数字开头和结尾";
    format!("不允许使用任务名称 {:?}：{rule}", error.name())
}

fn slot_ref(error: &SlotRefError) -> String {
    match error {
        SlotRefError::Job(error) => job_name(error),
        SlotRefError::Key(error) => slot_key(error),
        SlotRefError::Distance(text) => {
            format!("{text:?} 不是时间槽：上一个时间槽写作 @-1，最远为 @-{FARTHEST}")
        }
    }
}

fn slot_key(error: &SlotKeyError) -> String {
    format!(
        "{:?} 不是时间槽：请使用其 UTC 开始时间，省略末尾为零的分和秒，例如 2026-11-21T14Z 或 2026-11-21T14:30Z；上一个时间槽写作 @-1",
        error.text()
    )
}

fn pause_end(error: &PauseEndError) -> String {
    match error {
        PauseEndError::Unreadable(text) => {
            format!("直到：{text:?} 既不是时长也不是时间：请写成 2h 或 2026-11-21T14:00:00Z 这样的形式")
        }
        PauseEndError::TooLate => "直到：超出范围：请填写公元 10000 年之前的时间，或留空".to_owned(),
        PauseEndError::Passed { end, now } => {
            format!("直到：{} 已过：存储的时钟为 {}；请填写更晚的时间", instant(*end), instant(*now))
        }
    }
}

const fn refusal(why: TriggerRefusal) -> &'static str {
    match why {
        TriggerRefusal::Leaving => "该节点正在退出",
        TriggerRefusal::NotInFile => "该节点的配置文件中没有此任务",
        TriggerRefusal::OtherNodes => "任务不在该节点上运行：only_on 指定了其他标签",
        TriggerRefusal::NoSuchSlot => "按该节点的配置文件，任务没有这个时间槽",
        TriggerRefusal::Early => "时间槽尚未开始",
        TriggerRefusal::Over => "时间槽已结束",
        TriggerRefusal::Driven => "该节点正在运行该时间槽，或正在等待运行",
    }
}

/// The state of a word, which a form may have got wrong.
fn state(word: &str) -> &str {
    let known = Shown::ALL.into_iter().find(|state| state.word() == word);
    known.map_or(word, |state| words_chinese::state(state))
}

const fn perhaps_done(maybe: bool) -> &'static str {
    if maybe { "；操作可能已经执行：请先查看，再决定是否重试" } else { "" }
}
