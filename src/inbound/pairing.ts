import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hashPairingCode, newApprovalId, newOneTimeCode } from '../commands/one-time-code.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import type { KeptMessage } from '../store/base/json.ts';
import type { Decision, EditDecision, KeptChange } from '../store/intake/proposal.ts';
import { cleanLabel } from '../texts/clean-untrusted.ts';
import type { Notices } from '../texts/notices.ts';

export type PairingSettings = {
  /** How long a code holds. */
  readonly validMinutes: number;
  /** Requests that may wait at once, per bot account. */
  readonly maxPending: number;
};

type PairingContext = {
  readonly pairing: PairingSettings;
  readonly namedOwners: readonly string[];
  readonly notices: Notices;
};

/** A longer message of a stranger is not kept, in characters of JSON. */
const longestKept = 16_384;

/** Applies a stranger's edit to the message that is kept of them: one that has become too long is kept no more. */
export function keptEdit(edit: EditDecision): KeptChange {
  return JSON.stringify(edit).length <= longestKept ? edit : 'deleted';
}

/**
 * A stranger is refused and asks to be let in. The code is drawn here; what is said to whom is decided in the
 * transaction, which knows who asked before and who owns the bot. `message` is answered once they are let in.
 */
export function pairingRequest(
  { pairing, namedOwners, notices }: PairingContext,
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
      name: cleanLabel(sender.name) || notices.whoIsUnnamed,
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
