/** How a sender reads campaign files. */

import { formOf, openCampaign, type Form } from "../campaign/campaign.js";
import { openMaker } from "../making.js";
import { Answers } from "../store/answers.js";
import type { Reading } from "./present.js";
import type { SenderOptions } from "./options.js";
import type { Named } from "./publication.js";

/** Return the reading of a sender with these options. */
export function reading({ policy, store, designs = [] }: SenderOptions): Reading {
  return {
    mostBytes: policy.maxDictionaryBytes,
    named: (file) => namedIn(formOf(file)),
    check: async (file, signature) => {
      const form = formOf(file);
      await policy.check(form, signature);
      return namedIn(form);
    },
    open: async ({ file, ...rest }) =>
      openMaker({ ...rest, campaign: await openCampaign(file, designs), policy, answers: new Answers(store) }),
  };
}

function namedIn({ fingerprint, dictionary }: Form): Named {
  return { fingerprint, dictionary: dictionary?.digest };
}
