/** The gateway's intents by bit, and which of them an application must be granted first. */
export const intents = {
  guilds: 1 << 0,
  guildMembers: 1 << 1,
  guildPresences: 1 << 8,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  guildMessageTyping: 1 << 11,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
  directMessageTyping: 1 << 14,
  messageContent: 1 << 15,
} as const;
export type IntentName = keyof typeof intents;

/** Every bit that has a meaning: 0 to 16, 20, 21, 24 and 25. */
const known = ((1 << 17) - 1) | (0b11 << 20) | (0b11 << 24);

export const areIntents = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && (value & ~known) === 0;

export type Privileged = {
  readonly messageContent: boolean;
  readonly guildMembers: boolean;
  readonly guildPresences: boolean;
};

/** Says whether the application was granted every privileged intent in `asked`. */
export function isGranted(asked: number, granted: Privileged): boolean {
  return (Object.keys(granted) as (keyof Privileged)[]).every(
    (name) => granted[name] || (asked & intents[name]) === 0,
  );
}

/** Returns the application's flags in READY, according to the portal's switches. */
export function applicationFlags(granted: Privileged): number {
  const { messageContent, guildMembers, guildPresences } = granted;
  return (messageContent ? 1 << 19 : 0) | (guildMembers ? 1 << 15 : 0) | (guildPresences ? 1 << 13 : 0);
}
