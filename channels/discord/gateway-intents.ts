/** Intents that the bot asks for, and those it can run without. */
const intents = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
} as const;
export const basicIntents = Object.values(intents).reduce((sum, bit) => sum | bit, 0);

/** Privileged: without it guild messages that do not mention the bot come without their text. */
export const contentIntent = 1 << 15;

/** Bits of an application's flags: granted, and granted below 100 guilds (or its successor's limit). */
const contentFlags = (1 << 18) | (1 << 19);

/** Whether the developer portal allows the privileged intent. */
export function isContentGranted({ flags }: { readonly flags: number }): boolean {
  return (flags & contentFlags) !== 0;
}
