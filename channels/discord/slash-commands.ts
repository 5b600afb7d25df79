/** The bot's global slash commands: one each, with one optional text where words may follow. */
import { SlashCommandBuilder } from 'discord.js';
import { z } from 'zod';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { ApplicationCommand, DiscordApi } from './api.ts';
import { readRefusal } from './failures.ts';

const mostCommands = 100;

const knownSchema = z.object({
  name: z.string(),
  description: z.string(),
  options: z
    .array(
      z.object({
        type: z.int(),
        name: z.string(),
        description: z.string(),
        required: z.boolean().default(false),
      }),
    )
    .default([]),
});

export function toApplicationCommands(commands: readonly NativeCommand[]): readonly ApplicationCommand[] {
  return commands
    .filter(({ name }) => /^[a-z0-9_-]{1,32}$/.test(name))
    .slice(0, mostCommands)
    .map(({ name, description, argument }) => {
      const command = new SlashCommandBuilder().setName(name).setDescription(cut(description || name));
      if (argument !== undefined)
        command.addStringOption((option) => option.setName('text').setDescription(cut(argument)));
      return command.toJSON();
    });
}

/** Written only when it differs, since Discord takes 200 changes a day, or when it cannot be read. */
export async function synchronise(
  api: Pick<DiscordApi, 'commands' | 'setCommands'>,
  { application, wanted }: { readonly application: string; readonly wanted: readonly ApplicationCommand[] },
  signal: AbortSignal,
): Promise<void> {
  const known = await api.commands(application, signal).then(listOf, passOver);
  if (known !== listOf(wanted)) await api.setCommands(application, wanted, signal);
}

/** An unreadable list is still written, unless Discord asks for a wait. */
export function passOver(error: unknown): undefined {
  if (readRefusal(error)?.status === 429) throw error;
}

/** In any order; Discord has its own, and adds fields. */
function listOf(commands: readonly unknown[]): string {
  const rows = commands.map((one) => JSON.stringify(knownSchema.safeParse(one).data));
  return rows.sort().join('\n');
}

function cut(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text;
}
