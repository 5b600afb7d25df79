import { localTime } from '#channel-kit/time-text.ts';
import type { GapCode, TroubleCode } from '#contracts/channel.ts';
import type { AlertKind } from '#contracts/owner-alert.ts';
import { type ChatTexts, fillText, type TextKey } from '../texts/chat-texts.ts';
import { stripControls } from '../texts/untrusted-text.ts';

export type ReportedAlert = {
  readonly kind: AlertKind;
  readonly subject: string;
  readonly values: Readonly<Record<string, string>>;
  readonly count: number;
};

/**
 * Returns the owner's text for an alert. Reasons come from networks, so they are cleaned and shortened; times are those of
 * `timeZone`, by default this machine's.
 */
export function alertText(texts: ChatTexts, trouble: ReportedAlert, timeZone?: string): string {
  const { kind, count, values } = trouble;
  const words = { ...keyWords(trouble, texts), ...timesOf(values, timeZone) };
  const code = reasonKeys.get(trouble.values.code ?? '');
  const reason = code === undefined ? words.reason : fillText(texts[code], { detail: words.reason });
  const text = fillText(texts[keyOf(trouble)], { ...words, ...(reason !== undefined && { reason }) });
  const saysCount = kind === 'delivery-unknown';
  return count === 1 || saysCount ? text : fillText(texts.ownerRepeated, { text, count });
}

/** Returns the owner's text for the end of an alert; undefined when no message is needed. */
export function alertEndText(texts: ChatTexts, trouble: ReportedAlert): string | undefined {
  const key = endKeys[trouble.kind];
  const { kind, values } = trouble;
  const isAccepted = kind !== 'model-key' || values.problem === undefined || values.problem === 'key';
  return key && fillText(texts[isAccepted ? key : 'ownerModelAnswers'], keyWords(trouble, texts));
}

const endKeys: Readonly<Partial<Record<AlertKind, TextKey>>> = {
  'channel-down': 'ownerChannelBack',
  'channel-unauthorised': 'ownerChannelBack',
  'channel-challenge': 'ownerChannelBack',
  'model-key': 'ownerModelKeyAccepted',
  'lane-stuck': 'ownerLaneMoves',
  'delivery-waits': 'ownerDeliveryGoesOn',
};

function keyOf({ kind, count, values }: ReportedAlert): TextKey {
  // Version 0.2.0 stored no `problem`.
  const problem = values.problem ?? (values.variable === undefined ? 'model' : 'key');
  if (kind === 'model-key') return keyProblems.get(problem) ?? keys[kind];
  if (kind === 'delivery-unknown' && count !== 1) return 'ownerDeliveriesUnknown';
  return keys[kind];
}

const keys: Readonly<Record<AlertKind, TextKey>> = {
  'channel-down': 'ownerChannelDown',
  'channel-unauthorised': 'ownerChannelUnauthorised',
  'channel-challenge': 'ownerChannelChallenge',
  'model-key': 'ownerModelKey',
  'model-without-tools': 'ownerModelWithoutTools',
  'model-window': 'ownerModelWindow',
  'model-cache': 'ownerModelCache',
  'context-full': 'ownerContextFull',
  'lane-stuck': 'ownerLaneStuck',
  'part-failing': 'ownerPartFailing',
  'hook-suspended': 'ownerHookSuspended',
  'run-failed': 'ownerRunFailed',
  'delivery-unknown': 'ownerDeliveryUnknown',
  'delivery-expired': 'ownerDeliveryExpired',
  'delivery-waits': 'ownerDeliveryWaits',
  'events-missed': 'ownerEventsMissed',
  'conversation-moved': 'ownerConversationMoved',
  'budget-spent': 'ownerBudgetSpent',
  'conversation-unreachable': 'ownerConversationUnreachable',
};

const keyProblems: ReadonlyMap<string, TextKey> = new Map([
  ['credit', 'ownerModelCredit'],
  ['allowance', 'ownerModelAllowance'],
  ['address', 'ownerModelAddress'],
  ['model', 'ownerModelRefused'],
]);

const codes = {
  'no-answer': 'reasonNoAnswer',
  refused: 'reasonRefused',
  'bad-credentials': 'reasonBadCredentials',
  conflict: 'reasonConflict',
  captcha: 'reasonCaptcha',
  settings: 'reasonSettings',
  'server-changed': 'reasonServerChanged',
  'not-stored': 'reasonNotStored',
  internal: 'reasonInternal',
  'too-old': 'reasonTooOld',
  'no-history': 'reasonNoHistory',
  'history-refused': 'reasonHistoryRefused',
  'not-kept': 'reasonNotKept',
  'cut-off': 'reasonCutOff',
  lost: 'reasonLost',
  undecrypted: 'reasonUndecrypted',
  'identity-changed': 'reasonIdentityChanged',
} as const satisfies Readonly<Record<TroubleCode | GapCode, TextKey>>;
/** A map, because a stored alert may have a code of another version. */
const reasonKeys = new Map<string, TextKey>(Object.entries(codes));

const longestWords = 300;

/** Returns the values that are times, which are stored in UTC, as people read them. */
function timesOf(values: ReportedAlert['values'], timeZone: string | undefined) {
  const times = Object.entries(values).flatMap(([name, value]) => {
    const at = name === 'since' || name === 'until' ? Date.parse(value) : Number.NaN;
    return Number.isNaN(at) ? [] : [[name, localTime(at, timeZone)] as const];
  });
  return Object.fromEntries(times);
}

/** Adds what the texts about a key call the provider and the key. */
function keyWords(trouble: ReportedAlert, texts: ChatTexts): Readonly<Record<string, string | number>> {
  const words = wordsOf(trouble);
  if (trouble.kind !== 'model-key') return words;
  const { keys = '1', tail = '' } = trouble.values;
  const which = keys === '1' ? texts.ownerKey : fillText(texts.ownerKeyOfSeveral, words);
  return {
    provider: trouble.subject,
    ...words,
    which: which + (keys === '1' || tail === '' ? '' : ` (…${tail})`),
  };
}

function wordsOf({ subject, values, count }: ReportedAlert): Readonly<Record<string, string | number>> {
  const words = Object.entries({ ...values, subject }).map(
    ([name, value]) =>
      [name, stripControls(value).replace(/\s+/g, ' ').slice(0, longestWords).toWellFormed()] as const,
  );
  return { ...Object.fromEntries(words), count };
}
