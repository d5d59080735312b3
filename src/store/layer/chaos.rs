//! A network that loses, repeats and delays: deterministic from a seed, or by a script. For tests. It
//! changes no answer; it only keeps one from arriving.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::store::layer::{Call, Layer, Layered, Reply};
use crate::store::{Applied, ErrorKind, Op, Store, StoreError};

/// What can happen to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChaosFault {
    /// The request never arrives: not applied, but the caller cannot know.
    LoseRequest,
    /// It is applied and the answer never arrives.
    LoseReply,
    /// The store refuses the content of the request: not applied.
    RefuseContent,
    /// It is applied twice; the caller has the first answer.
    Duplicate,
    /// The caller lets others run this many times before the request is sent.
    Delay(u32),
    /// Nothing; to let a call pass in a script.
    Pass,
}

/// How often each fault happens, per thousand calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// [`ChaosFault::LoseRequest`].
    pub lose_request: u16,
    /// [`ChaosFault::LoseReply`].
    pub lose_reply: u16,
    /// [`ChaosFault::Duplicate`].
    pub duplicate: u16,
    /// [`ChaosFault::Delay`], of one to eight turns.
    pub delay: u16,
}

/// A store behind such a network.
pub type ChaosStore = Layered<Arc<Chaos>>;

/// Decides what happens to each call.
#[derive(Debug)]
pub struct Chaos {
    odds: Odds,
    state: Mutex<ChaosState>,
}

#[derive(Debug)]
struct ChaosState {
    seed: u64,
    script: VecDeque<(Op, ChaosFault)>,
}

impl Chaos {
    /// Faults by chance, the same ones for the same seed and order of calls.
    pub fn seeded(seed: u64, odds: Odds) -> Arc<Self> {
        Arc::new(Self { odds, state: Mutex::new(ChaosState { seed, script: VecDeque::new() }) })
    }

    /// Faults by [`Chaos::next`] only.
    pub fn scripted() -> Arc<Self> {
        Self::seeded(0, Odds::default())
    }

    /// This happens to the next call of that operation that nothing else was said of.
    pub fn next(&self, op: Op, fault: ChaosFault) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).script.push_back((op, fault));
    }

    /// Puts `store` behind this network.
    pub fn over(self: &Arc<Self>, store: Arc<dyn Store>) -> ChaosStore {
        Layered::new(store, Arc::clone(self))
    }

    fn fault(&self, op: Op) -> ChaosFault {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = state.script.iter().position(|(scripted, _)| *scripted == op) {
            return state.script.remove(index).map_or(ChaosFault::Pass, |(_, fault)| fault);
        }
        self.odds.pick(&mut state.seed)
    }
}

impl Odds {
    fn pick(&self, seed: &mut u64) -> ChaosFault {
        let drawn = draw(seed) % 1_000;
        let turns = u32::try_from(draw(seed) % 8 + 1).unwrap_or(1);
        let faults = [
            (self.lose_request, ChaosFault::LoseRequest),
            (self.lose_reply, ChaosFault::LoseReply),
            (self.duplicate, ChaosFault::Duplicate),
            (self.delay, ChaosFault::Delay(turns)),
        ];
        let mut bound = 0;
        for (odds, fault) in faults {
            bound += u64::from(odds);
            if drawn < bound {
                return fault;
            }
        }
        ChaosFault::Pass
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to spread faults.
const fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[async_trait]
impl Layer for Arc<Chaos> {
    async fn around<'a, T: Send + 'a>(&'a self, op: Op, location: &'a str, call: Call<'a, T>) -> Reply<T> {
        let lost = |what| Err(StoreError::new(ErrorKind::Timeout, Applied::Maybe, op, location, what));
        match self.fault(op) {
            ChaosFault::Pass => call().await,
            ChaosFault::LoseRequest => lost("the request was lost"),
            ChaosFault::LoseReply => {
                let _unheard = call().await;
                lost("the reply was lost")
            }
            ChaosFault::RefuseContent => {
                Err(StoreError::new(ErrorKind::Content, Applied::No, op, location, "the content is refused"))
            }
            ChaosFault::Duplicate => {
                let first = call().await;
                let _unheard = call().await;
                first
            }
            ChaosFault::Delay(turns) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                call().await
            }
        }
    }
}
