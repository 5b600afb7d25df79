/** Intents that the bot asks for, and those it can run without. */
import { ApplicationFlags, GatewayIntentBits } from 'discord.js';

export const basicIntents =
  GatewayIntentBits.Guilds |
  GatewayIntentBits.GuildMessages |
  GatewayIntentBits.GuildMessageReactions |
  GatewayIntentBits.DirectMessages |
  GatewayIntentBits.DirectMessageReactions;

/** Privileged: without it guild messages that do not mention the bot come without their text. */
export const contentIntent = GatewayIntentBits.MessageContent;

/** Bits of an application's flags: granted, and granted below 100 guilds (or its successor's limit). */
const contentFlags = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

/** Whether the developer portal allows the privileged intent. */
export function isContentGranted({ flags }: { readonly flags: number }): boolean {
  return (flags & contentFlags) !== 0;
}
