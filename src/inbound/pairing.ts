import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hashPairingCode, newOneTimeCode } from '../commands/one-time-code.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import type { Decision } from '../store/intake/proposal.ts';
import { cleanLabel } from '../texts/clean-untrusted.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';

export type PairingSettings = {
  /** How long a code holds. */
  readonly validMinutes: number;
  /** Requests that may wait at once, per bot account. */
  readonly maxPending: number;
};

/**
 * A stranger is refused and asks to be let in. The code is drawn here and only its hash is kept; whether
 * it is shown is decided in the transaction, which knows who asked before.
 */
export function pairingRequest(
  { pairing, notices }: { readonly pairing: PairingSettings; readonly notices: Notices },
  { route, sender }: InboundEnvelope,
): Decision {
  const code = newOneTimeCode();
  const { validMinutes, maxPending } = pairing;
  return {
    kind: 'pair',
    request: {
      id: crypto.randomUUID(),
      ref: platformRef(route.channel, sender.id),
      name: cleanLabel(sender.name) || notices.whoIsUnnamed,
      route,
      codeHash: hashPairingCode(code),
      text: fillNotice(notices.pairingCode, { code, minutes: validMinutes }),
      validMs: validMinutes * 60_000,
      maxPending,
    },
  };
}
