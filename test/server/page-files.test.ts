import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { aServer } from './a-server.ts';

const folder = 'src/server/page';
const named = /(?:from|import|src=|href=)\s*\(?['"](\/(?:page|client|vendor)\/[\w./-]+)['"]/g;

it('serves every file of the page, and every module that one of them imports', async () => {
  const { server, url } = await aServer();
  const own = readdirSync(folder).map((name) => (name === 'index.html' ? '/' : `/page/${name}`));
  const served = new Set<string>();
  const queue = [...own];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (served.has(path)) continue;
    served.add(path);
    const response = await fetch(`${url}${path}`);
    expect(response.status, `${path}; src/server/page-files.ts lists what is served`).toBe(200);
    const text = await response.text();
    if (own.includes(path) && path.startsWith('/page/'))
      expect(text.length, path).toBe(readFileSync(`${folder}${path.slice('/page'.length)}`, 'utf8').length);
    if (!path.startsWith('/vendor/')) queue.push(...[...text.matchAll(named)].map(([, file]) => file ?? ''));
  }
  expect([...served].filter((path) => path.startsWith('/client/')).length).toBeGreaterThan(0);
  expect(own.length).toBeGreaterThan(20);
  await server.close();
});
