/** The database of each release is carried on by this version, and the release starts on the result. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { databaseServer, makeDatabase, query } from '../e2e/own-database.ts';
import type { Person } from '../e2e/person.ts';
import { openStage, type Stage } from '../e2e/stage.ts';
import { until } from '../e2e/until.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { releases } from './releases.mjs';

const slow = { timeout: 120_000 };
const root = join(import.meta.dirname, '../..');
const fixture = (version: string, name: string) =>
  gunzipSync(readFileSync(join(import.meta.dirname, version, name)));

/** Says whether the clone has the release's commit; an archive of the sources and a shallow clone don't. */
function hasCommit(commit: string): boolean {
  try {
    execFileSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{tree}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const trees = new Map<string, string>();
afterAll(() => {
  for (const tree of trees.values()) rmSync(tree, { recursive: true, force: true });
});

/** Returns the release's gateway, from its own sources. */
function programOf(commit: string): string {
  const tree = trees.get(commit) ?? mkdtempSync(join(tmpdir(), 'parley-release-'));
  if (!trees.has(commit)) {
    trees.set(commit, tree);
    execFileSync('sh', ['-c', `git -C '${root}' archive ${commit} | tar -x -C '${tree}'`]);
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  }
  return join(tree, 'test/e2e/parley-under-test.ts');
}

/** Opens a stage whose gateway finds the release's database. */
const engines = {
  SQLite: async (version: string) => {
    const stage = await openStage({ networks: ['web'] });
    writeFileSync(join(stage.dataDir, 'parley.db'), fixture(version, 'parley.db.gz'));
    return stage;
  },
  PostgreSQL: async (version: string) => {
    const { url } = await makeDatabase(onTestFinished);
    await query(url, fixture(version, 'parley.sql.gz').toString());
    return openStage({ networks: ['web'], env: { DATABASE_URL: url } });
  },
};

async function openOn(engine: keyof typeof engines, version: string): Promise<Stage> {
  const stage = await engines[engine](version);
  onTestFinished(() => stage.close());
  // The fixture has seen the first updates and messages of another such server.
  stage.telegram.updates.renumber(410_100_001);
  stage.telegram.world.numberMessagesFrom(1_001);
  for (const id of [501, 502, 503, 504, 505, 506])
    stage.telegram.world.addPrivateChat({ id, is_bot: false, first_name: `Person ${id}` });
  stage.model.script((body) => ({ text: `You said: ${lastUserText(body)}` }));
  return stage;
}

async function asks(person: Person, text: string): Promise<void> {
  person.says(text);
  await until(() => person.standing().some((shown) => shown.includes(`You said: ${text}`)), { what: text });
}

for (const { version, commit } of releases)
  for (const engine of ['SQLite', 'PostgreSQL'] as const)
    describe.skipIf(engine === 'PostgreSQL' && databaseServer === undefined)(
      `${version} on ${engine}`,
      () => {
        it(
          "continues another version's data: answers pending messages and shows the history",
          slow,
          async () => {
            const stage = await openOn(engine, version);
            const parley = await stage.start();
            const [owner, page] = [stage.person('telegram', 501), stage.person('web')];
            await until(() => owner.standing().some((text) => text.includes('Waiting two.')), {
              what: 'what waited',
            });
            await until(() => page.standing().includes('You said: Good morning, page.'), {
              what: 'the history',
            });
            await asks(owner, 'Are you still there?');
            await parley.stop();
            expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
          },
        );

        it.skipIf(!hasCommit(commit))(
          "starts an older version again on this version's data, and answers",
          slow,
          async () => {
            const stage = await openOn(engine, version);
            const now = await stage.start();
            await asks(stage.person('telegram', 505), 'By this version.');
            await now.stop();
            const before = await stage.start({ program: programOf(commit) });
            await asks(stage.person('telegram', 505), 'By the version before.');
            const page = stage.person('web');
            await until(() => page.standing().includes('You said: Good morning, page.'), {
              what: 'the history',
            });
            await before.stop();
            expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
          },
        );
      },
    );
