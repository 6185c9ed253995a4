//! Progress in a terminal: one line for the current work, one for each of its parts, and one for the waiting stages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use speed_core::printable;
use speed_experiment::{Event, Progress, RunView, StageStatus};

use super::ticker::Ticker;

/// The interval between two drawings.
const EVERY: Duration = Duration::from_millis(250);

pub(crate) struct Bars {
    drawn: Arc<Mutex<Drawn>>,
    _ticker: Ticker,
}

struct Drawn {
    bars: MultiProgress,
    view: RunView,
    work_began: Instant,
    /// The current work, or the running stage.
    work: Option<(String, ProgressBar)>,
    parts: BTreeMap<usize, ProgressBar>,
    waiting: ProgressBar,
}

impl Bars {
    pub(crate) fn new() -> Self {
        let bars = MultiProgress::new();
        let waiting = bars.add(ProgressBar::new_spinner().with_style(style("{wide_msg}")));
        let view = RunView::default();
        let drawn = Drawn { bars, view, work_began: Instant::now(), work: None, parts: BTreeMap::new(), waiting };
        let drawn = Arc::new(Mutex::new(drawn));
        let own = Arc::clone(&drawn);
        let ticker = Ticker::new(EVERY, move || {
            let mut drawn = lock(&own);
            let seconds = drawn.work_began.elapsed().as_secs_f64();
            if let Some(work) = &mut drawn.view.work {
                work.seconds = seconds;
            }
            drawn.draw();
        });
        Self { drawn, _ticker: ticker }
    }

    /// Shows a run that another process works on.
    pub(crate) fn show(&self, view: RunView) {
        self.change(|drawn| {
            let seconds = view.work.as_ref().map_or(0.0, |work| work.seconds);
            let began = Duration::try_from_secs_f64(seconds).ok().and_then(|ago| Instant::now().checked_sub(ago));
            drawn.work_began = began.unwrap_or_else(Instant::now);
            drawn.view = view;
        });
    }

    pub(crate) fn clear(&self) {
        let mut drawn = lock(&self.drawn);
        drawn.view = RunView::default();
        drawn.draw();
        let _ = drawn.bars.clear();
    }

    fn change(&self, change: impl FnOnce(&mut Drawn)) {
        let mut drawn = lock(&self.drawn);
        change(&mut drawn);
        drawn.draw();
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

fn lock(drawn: &Mutex<Drawn>) -> MutexGuard<'_, Drawn> {
    // The view is valid even if another thread panicked.
    drawn.lock().unwrap_or_else(PoisonError::into_inner)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drawn {
    fn draw(&mut self) {
        self.draw_work();
        let parts = self.view.work.as_ref().map_or(&[][..], |work| &work.parts);
        self.parts.retain(|number, bar| {
            let is_there = parts.iter().any(|part| part.number == *number);
            if !is_there {
                bar.finish_and_clear();
                self.bars.remove(bar);
            }
            is_there
        });
        for part in parts {
            let bar = self.parts.entry(part.number).or_insert_with(|| {
                let bar = ProgressBar::new(part.total).with_style(style("{prefix:>22!} {bar:14} {wide_msg}"));
                self.bars.insert_before(&self.waiting, bar)
            });
            bar.set_prefix(format!("{} {} of {}", part.name, part.number, part.of));
            bar.set_position(part.done);
            bar.set_message(format!("{} {} of {}", part.unit, part.done, part.total));
        }
        self.draw_waiting();
    }

    fn draw_work(&mut self) {
        let shown = match (&self.view.work, self.view.running()) {
            (Some(work), _) => Some((&work.name, "{prefix:>22!} {bar:14} {wide_msg}")),
            (None, Some(stage)) => Some((&stage.name, "{prefix:>22!} {spinner} running {elapsed}")),
            (None, None) => None,
        };
        let is_other = |work: &mut (String, ProgressBar)| shown.is_none_or(|(name, _)| work.0 != *name);
        if let Some((_, bar)) = self.work.take_if(is_other) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
        if let (None, Some((name, template))) = (&self.work, shown) {
            let bar = self.bars.insert(0, ProgressBar::new(0).with_style(style(template)));
            bar.set_prefix(printable(name));
            self.work = Some((name.clone(), bar));
        }
        let Some((_, bar)) = &self.work else { return };
        if let Some(work) = &self.view.work {
            bar.set_length(work.total);
            bar.set_position(work.done);
            let note = if work.note.is_empty() { String::new() } else { format!("; {}", printable(&work.note)) };
            bar.set_message(format!("{}{note}", work.counts()));
        }
        bar.tick();
    }

    fn draw_waiting(&self) {
        let waiting = self.view.stages.iter().filter(|stage| stage.state == StageStatus::Waiting);
        let waiting: Vec<&str> = waiting.map(|stage| stage.name.as_str()).collect();
        let text =
            if waiting.is_empty() { String::new() } else { format!("{:>22} {}", "waiting:", waiting.join(", ")) };
        self.waiting.set_message(text);
        self.waiting.tick();
    }

    fn line(&self, text: &str) {
        let _ = self.bars.println(printable(text));
    }
}

impl Progress for Bars {
    fn on(&self, event: Event<'_>) {
        match event {
            Event::Note(line) => return lock(&self.drawn).line(line),
            Event::Warning(line) => return lock(&self.drawn).line(&format!("warning: {line}")),
            _ => {}
        }
        self.change(|drawn| {
            drawn.view.apply(event);
            match event {
                Event::Finished(stage, true) => drawn.line(&format!("{stage}: done already")),
                Event::Begin { .. } => drawn.work_began = Instant::now(),
                Event::End(summary) => {
                    drawn.line(&format!("{summary} ({:.1} s)", drawn.work_began.elapsed().as_secs_f64()));
                }
                _ => {}
            }
        });
    }
}
