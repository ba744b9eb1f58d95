//! The reports of one value, ready to be queued; each report is charged before it is made.

use std::sync::Arc;

use super::common::Common;
use super::open_evaluations::OpenEvaluation;
use super::waiting::{Measurement, Waiting, new_evaluation};
use super::waits::random_time;
use crate::budget::Request;
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::Result;
use crate::formats::bytes::hex;
use crate::making::ReportMaker;
use crate::randomness::Fresh;
use crate::trust::installation::require_asked;
use crate::values::strata::Coordinates;

/// A report to queue, and the evaluation to keep once the report is queued; none if it needs no evaluation.
pub(crate) struct Made {
    pub(crate) waiting: Waiting,
    pub(crate) evaluation: Option<OpenEvaluation>,
}

/// Makes reports, each of which is due after a random delay.
///
/// With noise of the mixes a report is made for the window in which it is due, and is given up once this window is over
/// (`Queue::claim`): it would count in no other one.
pub(crate) struct Making {
    pub(crate) common: Arc<Common>,
    /// The length of the operator's windows.
    pub(crate) window: i64,
    /// For how long an evaluation is asked for again if no answer comes.
    pub(crate) answer_within: i64,
}

impl Making {
    /// Make the reports of a value, one for each of these streams. Either all of them are charged, in one step before
    /// the first report is made, or none is charged. `anew`: they are made from a waiting value.
    ///
    /// # Errors
    /// `NotAsked`, `OverCap`, `OptedOut`, `BudgetSpent`, `Untrusted`, `NoValidKey`: no report is made.
    pub(crate) fn made(
        &self,
        maker: &ReportMaker,
        streams: &[Stream],
        measurement: &Measurement,
        keep_value: bool,
        anew: bool,
    ) -> Result<Vec<Made>> {
        let (campaign, now) = (&maker.campaign, self.common.clock.now());
        require_asked(&self.common.store, campaign, now)?;
        maker.require_valid(streams, now)?;
        self.common.arrivals.require_room(campaign, streams, anew)?;
        let repeats = maker.repeats()?;
        let dues = streams.iter().map(|_| Ok(now + random_time(self.common.delay)?)).collect::<Result<Vec<_>>>()?;
        let requests: Vec<_> = streams
            .iter()
            .zip(&dues)
            .map(|(&stream, &due)| {
                let due = Some(due).filter(|_| is_bound(campaign, stream));
                Request { campaign, stream, number: 1, due, repeats }
            })
            .collect();
        // Drawn before the charge, so that nothing is charged if the system has no randomness.
        let randoms = streams.iter().map(|_| Fresh::new()).collect::<Result<Vec<_>>>()?;
        let telling = self.common.budget.charge(&requests, Some(self.window), now)?;
        let mut made = Vec::new();
        for (((&stream, due), tells), mut random) in streams.iter().zip(dues).zip(telling).zip(randoms) {
            let told = (tells > 0).then_some(measurement);
            let mut one = self.made_of(maker, stream, (told, &measurement.by), due, &mut random)?;
            one.waiting.measurement = keep_value.then(|| measurement.clone());
            made.push(one);
        }
        Ok(made)
    }

    /// Make one report, which tells a value or nothing.
    fn made_of(
        &self,
        maker: &ReportMaker,
        stream: Stream,
        (told, by): (Option<&Measurement>, &Coordinates),
        due: i64,
        random: &mut Fresh,
    ) -> Result<Made> {
        let (campaign, told) = (&maker.campaign, told.map(|measurement| measurement.value.as_str()));
        let (fingerprint, period) =
            (hex(&campaign.fingerprint), campaign.passes.as_ref().map_or(0, |passes| passes.seconds));
        let mut waiting = Waiting {
            stream: Some(stream),
            collector: self.common.collector(campaign)?.to_owned(),
            cap: campaign.shuffle.cap,
            period,
            window: is_bound(campaign, stream).then(|| campaign.starts(self.window).at(due)),
            ..Waiting::plain(None, Measurement::default(), due)
        };
        waiting.fingerprint.clone_from(&fingerprint);
        if stream == Stream::Reports {
            waiting.body = maker.report(told, by, due, random)?;
            return Ok(Made { waiting, evaluation: None });
        }
        if campaign.discovery.as_ref().is_none_or(|discovery| !discovery.is_oblivious) {
            waiting.body = maker.discovery_report(told, random)?;
            return Ok(Made { waiting, evaluation: None });
        }
        // The evaluation is asked for at the random time `due`, and the blank is sent at another random time, so
        // neither reveals the time of use.
        let pending = maker.pending_discovery(told, random)?;
        let (claim, until) = (new_evaluation()?, due + self.answer_within);
        waiting.body.clone_from(&pending.blank);
        waiting.claim.clone_from(&claim);
        (waiting.due, waiting.claimed_until) = (until + random_time(self.common.delay)?, until);
        let evaluation = OpenEvaluation { claim, fingerprint, due, until, pending, window: None, period };
        Ok(Made { waiting, evaluation: Some(evaluation) })
    }
}

/// Whether a report names its window itself.
fn is_bound(campaign: &Campaign, stream: Stream) -> bool {
    campaign.noise.is_some() && stream == Stream::Reports
}
