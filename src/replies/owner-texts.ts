import type { GapCode, TroubleCode } from '#contracts/channel.ts';
import type { AlertKind } from '#contracts/owner-alert.ts';
import { stripControls } from '../texts/control-characters.ts';
import { fillNotice, type NoticeKey, type Notices } from '../texts/notices.ts';

export type TroubleTold = {
  readonly kind: AlertKind;
  readonly subject: string;
  readonly values: Readonly<Record<string, string>>;
  readonly count: number;
};

/** The owner's text for an alert. Reasons come from networks, so they are cleaned and kept short. */
export function troubleText(notices: Notices, trouble: TroubleTold): string {
  const { kind, count } = trouble;
  const words = wordsOf(trouble);
  const code = reasonKeys.get(trouble.values.code ?? '');
  const reason = code === undefined ? words.reason : fillNotice(notices[code], { detail: words.reason });
  const text = fillNotice(notices[keyOf(trouble)], { ...words, ...(reason !== undefined && { reason }) });
  const saysCount = kind === 'delivery-unknown';
  return count === 1 || saysCount ? text : fillNotice(notices.ownerRepeated, { text, count });
}

/** The owner's text when an alert ends; undefined where no message is needed. */
export function troubleEndText(notices: Notices, trouble: TroubleTold): string | undefined {
  switch (trouble.kind) {
    case 'channel-down':
    case 'channel-unauthorised':
    case 'channel-challenge':
      return fillNotice(notices.ownerChannelBack, wordsOf(trouble));
    case 'model-key':
      return fillNotice(notices.ownerModelKeyAccepted, wordsOf(trouble));
    case 'lane-stuck':
      return fillNotice(notices.ownerLaneMoves, wordsOf(trouble));
    case 'delivery-waits':
      return fillNotice(notices.ownerDeliveryGoesOn, wordsOf(trouble));
    case 'model-without-tools':
    case 'context-full':
    case 'run-failed':
    case 'delivery-unknown':
    case 'events-missed':
    case 'conversation-moved':
    case 'budget-spent':
    case 'conversation-unreachable':
      return undefined;
    default:
      return trouble.kind satisfies never;
  }
}

function keyOf({ kind, count, values }: TroubleTold): NoticeKey {
  switch (kind) {
    case 'channel-down':
      return 'ownerChannelDown';
    case 'channel-unauthorised':
      return 'ownerChannelUnauthorised';
    case 'channel-challenge':
      return 'ownerChannelChallenge';
    case 'model-key':
      return values.variable === undefined ? 'ownerModelRefused' : 'ownerModelKey';
    case 'model-without-tools':
      return 'ownerModelWithoutTools';
    case 'context-full':
      return 'ownerContextFull';
    case 'lane-stuck':
      return 'ownerLaneStuck';
    case 'run-failed':
      return 'ownerRunFailed';
    case 'delivery-unknown':
      return count === 1 ? 'ownerDeliveryUnknown' : 'ownerDeliveriesUnknown';
    case 'delivery-waits':
      return 'ownerDeliveryWaits';
    case 'events-missed':
      return 'ownerEventsMissed';
    case 'conversation-moved':
      return 'ownerConversationMoved';
    case 'budget-spent':
      return 'ownerBudgetSpent';
    case 'conversation-unreachable':
      return 'ownerConversationUnreachable';
    default:
      return kind satisfies never;
  }
}

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
} as const satisfies Readonly<Record<TroubleCode | GapCode, NoticeKey>>;
/** A stored alert may have a code of another version. */
const reasonKeys = new Map<string, NoticeKey>(Object.entries(codes));

const longestWords = 300;

function wordsOf({ subject, values, count }: TroubleTold): Readonly<Record<string, string | number>> {
  const words = Object.entries({ ...values, subject }).map(
    ([name, value]) =>
      [name, stripControls(value).replace(/\s+/g, ' ').slice(0, longestWords).toWellFormed()] as const,
  );
  return { ...Object.fromEntries(words), count };
}
