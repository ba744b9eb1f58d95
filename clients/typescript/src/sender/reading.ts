/** How a sender reads campaign files. */

import { formOf, openCampaign } from "../campaign/campaign.js";
import { openMaker } from "../making.js";
import { Answers } from "../store/answers.js";
import type { Reading } from "./present.js";
import type { SenderOptions } from "./options.js";

/** Return the reading of a sender with these options. */
export function reading({ policy, store, designs = [] }: SenderOptions): Reading {
  return {
    named: (file) => {
      const { fingerprint, dictionary } = formOf(file);
      return { fingerprint, dictionary: dictionary?.digest };
    },
    check: (file, signature) => policy.check(formOf(file), signature),
    open: async ({ file, ...rest }) =>
      openMaker({ ...rest, campaign: await openCampaign(file, designs), policy, answers: new Answers(store) }),
  };
}
