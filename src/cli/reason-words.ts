import type { IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';

/** Says in words why an event was refused or ignored; undefined for any other outcome or reason. */
export function reasonWords(outcome: string, reason: string): string | undefined {
  if (outcome !== 'refused' && outcome !== 'ignored') return undefined;
  return Object.hasOwn(words, reason) ? words[reason as keyof typeof words] : undefined;
}

const words: Readonly<Record<IgnoreReason | RefusalReason, string>> = {
  'own-message': 'the bot wrote it itself',
  'bot-message': 'another bot wrote it',
  'not-mentioned': "it isn't addressed to the bot",
  empty: "there's nothing in it to answer",
  'unknown-message': "it concerns a message that Parley doesn't have",
  'for-other-bot': 'it may be a command for another bot',
  'not-the-author': 'only its author may change it',
  unchanged: 'it changes nothing',
  membership: 'it only reports who is in the conversation',
  migrated: 'it only reports that the conversation has moved',
  'dm-disabled': 'direct messages are turned off',
  'dm-not-allowed': "its sender isn't on the list of people who may write",
  'dm-not-paired': "its sender hasn't been approved",
  'pairing-full': 'too many requests for access are pending',
  'group-disabled': 'groups are turned off',
  'group-not-allowed': "the group isn't on the list of allowed groups",
  'sender-not-allowed': "its sender isn't on the list of people who may write in groups",
  'unsupported-event': "Parley doesn't support this kind of event",
  unreadable: "it can't be read; it's stored as received",
  'queue-full': 'too many messages were waiting',
  'rate-limited': 'its sender had sent too many in a short time',
  'not-permitted': "its sender isn't permitted to do that",
};
