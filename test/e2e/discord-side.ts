/** Discord on a stage: a local Discord, and people who write to the bot in direct messages. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type DiscordServer, startDiscordServer } from '../platforms/discord/server.ts';
import type { DiscordUser } from '../platforms/discord/types.ts';
import { readStore } from './conservation.ts';
import type { Person } from './person.ts';

export type DiscordSide = {
  readonly server: DiscordServer;
  readonly environment: Readonly<Record<string, string>>;
  person(id: number): Person;
  /** The person with that id as the platform knows them. */
  user(id: number): DiscordUser;
  close(): Promise<void>;
};

/** `dataDir`: the gateway's, whose ledger says which messages were accepted; Discord itself can't know. */
export async function openDiscordSide(
  dataDir: string,
  options: Parameters<typeof startDiscordServer>[0] = {},
): Promise<DiscordSide> {
  const server = await startDiscordServer(options);
  const users = new Map<number, DiscordUser>();
  const user = (id: number): DiscordUser => {
    const known = users.get(id) ?? server.world.addUser(`person${id}`, `Person ${id}`);
    users.set(id, known);
    return known;
  };
  return {
    server,
    get environment() {
      return server.environment;
    },
    user,
    person: (id) => {
      const said: string[] = [];
      return {
        says: (text) => void said.push(server.people.sends({ from: user(id), text }).id),
        presses: (label) => {
          const { id: dm } = server.world.dmWith(user(id));
          for (const message of server.botMessages(dm).toReversed()) {
            const button = buttonIn(message.components, label);
            if (button !== undefined) return void server.people.presses(message, user(id), button);
          }
          throw new Error(`test error: no button “${label}”`);
        },
        standing: () => server.botMessages(server.world.dmWith(user(id)).id).map(({ text }) => text),
        isHeard: () => areRecorded(dataDir, said),
        close: () => undefined,
      };
    },
    close: () => server.close(),
  };
}

/** Returns the Discord of a stage, which must have been opened with it. */
export function discordOf({ discord }: { readonly discord: DiscordSide | undefined }): DiscordSide {
  if (discord === undefined) throw new Error('test error: the stage has no Discord');
  return discord;
}

function areRecorded(dataDir: string, messageIds: readonly string[]): boolean {
  if (messageIds.length === 0) return true;
  if (!existsSync(join(dataDir, 'parley.db'))) return false;
  const rows = readStore(dataDir, 'select messageId from ledger');
  const known = new Set(rows.map(({ messageId }) => messageId));
  return messageIds.every((id) => known.has(id));
}

/** Returns the id of the button with this label in a message's components. */
function buttonIn(components: readonly unknown[], label: string): string | undefined {
  const rows = components as readonly { components?: readonly { label?: string; custom_id?: string }[] }[];
  return rows.flatMap((row) => row.components ?? []).find((each) => each.label === label)?.custom_id;
}
