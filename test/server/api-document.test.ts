import fastify from 'fastify';
import { expect, it } from 'vitest';
import { describeApi } from '../../src/server/api-document.ts';

it('refuses to start a route that the API description lacks', () => {
  const app = fastify();
  describeApi(app, { cookieName: () => 'c' });
  expect(() => app.get('/api/new', async () => ({}))).toThrow("GET /api/new isn't described");
  app.get('/page.js', { config: { access: 'public', call: 'none' } }, async () => '');
});
