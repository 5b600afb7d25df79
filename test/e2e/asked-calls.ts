/** Calls of the tools `once` and `again` that need an approval, on any channel. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { callsFirst, type Play } from './kill-scenarios.ts';
import type { Person } from './person.ts';
import type { Config } from './stage.ts';
import { until } from './until.ts';

/** `again` may run once more after a crash, `once` may not. */
type AskedTool = 'once' | 'again';

/** Each call of the tools asks. */
export const asksAboutOnce = {
  agents: [{ id: 'main', tools: { rules: ['once', 'again'].map((tool) => ({ tool, action: 'ask' })) } }],
} as const satisfies Config;

export const callsOnce: Play = callsFirst({ name: 'once' });

export const labels = { approve: 'Approve', always: 'Always, for this', deny: 'Refuse' } as const;

/** What `chatOf` returns for a question, and for what has taken its place. */
export const askedAbout = (tool: AskedTool) => `May I use ${tool} like this? { "dies": 0 }`;
export const asked = askedAbout('once');
export const endedAs = (end: string, tool: AskedTool = 'once') => `${tool}: ${end}. { "dies": 0 }`;

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
    return /^(once|again): .*\.$/.test(shown) ? [] : [shown];
  });
}

export async function untilAsked(person: Person, tool: AskedTool = 'once'): Promise<void> {
  await until(() => chatOf(person).includes(askedAbout(tool)), { what: 'the question is shown' });
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
