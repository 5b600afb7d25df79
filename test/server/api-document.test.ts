import fastify from 'fastify';
import { expect, it } from 'vitest';
import { describeApi } from '../../src/server/api-document.ts';

it('lets no route start that the description of the API says nothing of', () => {
  const app = fastify();
  describeApi(app, { cookieName: () => 'c' });
  expect(() => app.get('/api/new', async () => ({}))).toThrow("GET /api/new isn't described");
  app.get('/page.js', { config: { access: 'public', call: 'none' } }, async () => '');
});
