import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { environmentNames } from '../../src/config/environment.ts';

const metricsIn = (text: string) => new Set(text.match(/parley_[a-z_]+[a-z]/g));

/** Names that the code gives to metrics. */
function knownMetrics(): ReadonlySet<string> {
  const folder = 'src/server/metrics';
  const code = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, 'utf8'));
  return new Set([...code.join('\n').matchAll(/name: '(parley_[a-z_]+)'/g)].map(([, name]) => name ?? ''));
}

it('lists every variable that Parley reads, once, and no other', () => {
  const docs = readFileSync('docs/configuration.md', 'utf8');
  const table = docs.slice(docs.indexOf('## Environment'), docs.indexOf('## Several bots'));
  const named = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/[A-Z][A-Z0-9_]+/g) ?? [],
  );
  expect(named.toSorted()).toEqual([...environmentNames].sort());
});

it('describes every metric, and the dashboard asks for none that is not there', () => {
  const known = knownMetrics();
  expect(known.size).toBeGreaterThan(20);
  expect(metricsIn(readFileSync('docs/metrics.md', 'utf8'))).toEqual(known);
  const asked = [...metricsIn(readFileSync('docs/grafana.json', 'utf8'))].map((name) =>
    name.replace(/_bucket$/, ''),
  );
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

it('has a section for this version in the changelog', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(readFileSync('CHANGELOG.md', 'utf8')).toContain(`\n## ${version} `);
});
