/** How a sender reads campaign files. */

import { campaignOf } from "../campaign/campaign.js";
import { openMaker } from "../making.js";
import { parseDesigns } from "../oracles/design.js";
import { Answers } from "../store/answers.js";
import type { Reading } from "./present.js";
import type { SenderOptions } from "./options.js";

/** Return the reading of a sender with these options. */
export function reading({ policy, store, designs = [] }: SenderOptions): Reading {
  const known = parseDesigns(designs);
  return {
    named: (file) => {
      const { fingerprint, dictionary } = campaignOf(file, known);
      return { fingerprint, dictionary: dictionary?.digest };
    },
    open: ({ file, ...rest }) =>
      openMaker({ ...rest, campaign: campaignOf(file, known), policy, answers: new Answers(store) }),
  };
}
