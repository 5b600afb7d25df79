/** The bot's global slash commands, each with one optional text if it takes an argument. */
import { ApplicationIntegrationType, InteractionContextType, SlashCommandBuilder } from 'discord.js';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { ApplicationCommand } from './api.ts';
import { readRefusal } from './failures.ts';

const maxCommands = 100;

export function toApplicationCommands(commands: readonly NativeCommand[]): readonly ApplicationCommand[] {
  return commands
    .filter(({ name }) => /^[a-z0-9_-]{1,32}$/.test(name))
    .slice(0, maxCommands)
    .map(({ name, description, argument }) => {
      const command = new SlashCommandBuilder()
        .setName(name)
        .setDescription(cut(description || name))
        // Only where the bot is a member: in other chats, people would read answers meant for one person.
        .setIntegrationTypes(ApplicationIntegrationType.GuildInstall)
        .setContexts(InteractionContextType.Guild, InteractionContextType.BotDM);
      if (argument !== undefined)
        command.addStringOption((option) => option.setName('text').setDescription(cut(argument)));
      return command.toJSON();
    });
}

/** Ignores the error, since the bot's own id serves instead of the application's, unless Discord asks for a wait. */
export function passOver(error: unknown): undefined {
  if (readRefusal(error)?.status === 429) throw error;
}

function cut(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text;
}
