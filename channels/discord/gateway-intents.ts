/** Intents that the bot asks for, and those it can run without. */
import { ApplicationFlags, GatewayIntentBits } from 'discord.js';

export const basicIntents =
  GatewayIntentBits.Guilds |
  GatewayIntentBits.GuildMessages |
  GatewayIntentBits.GuildMessageReactions |
  GatewayIntentBits.GuildMessagePolls |
  GatewayIntentBits.DirectMessages |
  GatewayIntentBits.DirectMessageReactions |
  GatewayIntentBits.DirectMessagePolls;

/** Privileged: without it, guild messages that don't mention the bot arrive without their text. */
export const contentIntent = GatewayIntentBits.MessageContent;

/** Flags of an application: granted, and granted below 100 guilds (or whatever limit replaces that). */
const contentFlags = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited;

/** Says whether the developer portal allows the privileged intent. */
export function isContentGranted({ flags }: { readonly flags: number }): boolean {
  return (flags & contentFlags) !== 0;
}
