import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hashPairingCode, newApprovalId, newOneTimeCode } from '../commands/one-time-code.ts';
import { platformRef } from '../sessions/identities.ts';
import type { KeptMessage } from '../store/base/json.ts';
import type { Decision, EditDecision, KeptChange } from '../store/intake/proposal.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';

export type PairingSettings = {
  /** How long a code is valid. */
  readonly validMinutes: number;
  /** How many requests may be pending at once, per bot account. */
  readonly maxPending: number;
};

type PairingContext = {
  readonly pairing: PairingSettings;
  readonly namedOwners: readonly string[];
  readonly texts: ChatTexts;
};

/** Longer messages from strangers aren't kept; in characters of JSON. */
const longestKept = 16_384;

/** Applies a stranger's edit to their kept message, which is dropped if it has become too long. */
export function keptEdit(edit: EditDecision): KeptChange {
  return JSON.stringify(edit).length <= longestKept ? edit : 'deleted';
}

/**
 * Refuses a stranger and requests access for them. The code is drawn here; the transaction decides who is told what,
 * since it knows who asked before and who owns the bot. `message` is answered once they are let in.
 */
export function pairingRequest(
  { pairing, namedOwners, texts }: PairingContext,
  { route, sender }: InboundEnvelope,
  { message, isStart }: { readonly message: KeptMessage | undefined; readonly isStart: boolean },
): Decision {
  const code = newOneTimeCode();
  const { validMinutes, maxPending } = pairing;
  const isKept = message !== undefined && JSON.stringify(message).length <= longestKept;
  return {
    kind: 'pair',
    request: {
      id: newApprovalId(),
      ref: platformRef(route.channel, sender.id),
      name: cleanLabel(sender.name) || texts.whoIsUnnamed,
      route,
      code,
      codeHash: hashPairingCode(code),
      command: `${parleyCommand} pair approve ${code}`,
      validMs: validMinutes * 60_000,
      maxPending,
      owners: namedOwners,
      ...(isKept && { kept: message }),
      isStart,
    },
  };
}
