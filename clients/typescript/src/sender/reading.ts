/** How a sender reads campaign files. */

import { formOf, openCampaign, type Form } from "../campaign/campaign.js";
import { Untrusted } from "../errors.js";
import { part } from "../loading.js";
import { openMaker } from "../making.js";
import { loadPasses } from "../passes/load.js";
import { Answers } from "../store/answers.js";
import { loadInstallation } from "../trust/sample.js";
import type { Reading } from "./present.js";
import type { SenderOptions } from "./options.js";
import type { Named } from "./publication.js";
import { collectorName } from "./token.js";

const DAY = 86_400;

/** Return how a sender with these options reads campaign files. */
export function reading({ policy, store, siteName, issuer, windowSeconds = DAY, designs = [] }: SenderOptions): Reading {
  return {
    mostBytes: policy.maxDictionaryBytes,
    named: (file) => namedIn(formOf(file)),
    check: async (file, signature) => {
      const form = formOf(file);
      await policy.check(form, signature);
      return namedIn(form);
    },
    open: async ({ file, ...rest }) => {
      const campaign = await openCampaign(file, 1000 * windowSeconds, designs);
      collectorName(campaign, siteName);
      if (campaign.passes !== undefined) (await loadPasses()).requireIssuer(campaign, issuer, Untrusted);
      const maker = await openMaker({ ...rest, campaign, policy, answers: new Answers(store) });
      // These modules are loaded before there is a value, like all other modules.
      if (campaign.sample !== undefined) await loadInstallation();
      if (campaign.evaluatorKey !== undefined) await part(import("./evaluations.js"));
      return maker;
    },
  };
}

function namedIn({ fingerprint, dictionary }: Form): Named {
  return { fingerprint, dictionary: dictionary?.digest };
}
