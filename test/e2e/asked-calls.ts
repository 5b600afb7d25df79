/** Calls of the tool `once` that need an approval, on any channel. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { callsFirst, type Play } from './kill-scenarios.ts';
import type { Person } from './person.ts';
import type { Config } from './stage.ts';
import { until } from './until.ts';

/** Each call of the tool asks. */
export const asksAboutOnce = {
  agents: [{ id: 'main', tools: { rules: [{ tool: 'once', action: 'ask' }] } }],
} as const satisfies Config;

export const callsOnce: Play = callsFirst({ name: 'once' });

export const labels = { approve: 'Approve', always: 'Always, for this', deny: 'Refuse' } as const;

/** What `chatOf` returns for a question, and for what has taken its place. */
export const asked = 'May I use once like this? { "dies": 0 }';
export const endedAs = (end: string) => `once: ${end}. { "dies": 0 }`;

/** What the person sees, alike on every channel: without marks, commands, ids and answers to commands. */
export function chatOf(person: Pick<Person, 'standing'>): readonly string[] {
  return person.standing().flatMap((text) => {
    const lines = text
      .split('\n')
      .filter((line) => !line.startsWith('```') && !/: \/(approve|deny) /.test(line));
    const shown = lines
      .join(' ')
      .replace(/\{ +/, '{ ')
      .replace(/ by \w+:\S+ “[^”]*”/, ' by them');
    return /^once: .*\.$/.test(shown) ? [] : [shown];
  });
}

export async function untilAsked(person: Person): Promise<void> {
  await until(() => chatOf(person).includes(asked), { what: 'the question is shown' });
}

/** Lets all open questions expire, whether or not a process runs. */
export function expireAll(dataDir: string): void {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'), { timeout: 10_000 });
  try {
    db.exec(`update callApprovals set expiresAt = 1 where state = 'open';
      update lanes set leaseUntil = 1 where runId in (select id from runs where state = 'parked')`);
  } finally {
    db.close();
  }
}
