/**
 * Explains why signal-cli couldn't read a message; it only gives the class of its exception. Pure. A message that it
 * can't decrypt is requested again from the sender's app. One from a person with a new key stays in its cache for 30
 * days, and is delivered once that key is trusted.
 */
import { cleanText } from '#channel-kit/clean-text.ts';
import type { ChannelGap } from '#contracts/channel.ts';
import { conversationId } from '#contracts/ids.ts';
import { notificationSchema, senderSchema } from './envelope-schema.ts';
import { readAci } from './ids.ts';

/** The same message has been read before, or it is this device's own. */
export const isReadAlready = (type: string | null | undefined) =>
  /DuplicateMessage|SelfSend/.test(type ?? '');

const isNewKey = (type: string) => type.includes('UntrustedIdentity');
const isAboutKeys = (type: string) => /^Protocol|InvalidMessage|NoSession|InvalidKey/.test(type);

/** Returns what the owner and `why` are told; undefined if signal-cli reports no exception. */
export function explainException(frame: unknown): ChannelGap | undefined {
  const { account, exception, envelope } = notificationSchema.safeParse(frame).data ?? {};
  if (!exception || account === undefined) return undefined;
  const { sourceUuid, sourceName, sourceNumber } = senderSchema.safeParse(envelope).data ?? {};
  const aci = readAci(sourceUuid);
  const name = cleanText(sourceName || sourceNumber || '').slice(0, 60) || 'somebody';
  const who = aci === undefined ? undefined : `${name} (signal:${aci})`;
  const type = cleanText(exception.type ?? '').slice(0, 60);
  if (isNewKey(type)) {
    const code = 'identity-changed';
    if (aci === undefined) return { code, reason: 'its sender has a new safety number' };
    const call = `PUT /v1/identities/${account}/trust/${aci}`;
    const reason = `${who} has a new safety number; to trust it: ${call} of signal-cli-rest-api`;
    return { conversation: conversationId(aci), code, reason };
  }
  const cause = type === '' ? '' : ` (${type})`;
  if (!isAboutKeys(type)) return { code: 'lost', reason: `signal-cli couldn't read it${cause}` };
  const from = who === undefined ? '' : `, from ${who}`;
  return { code: 'undecrypted', reason: `signal-cli couldn't decrypt it${cause}${from}` };
}
