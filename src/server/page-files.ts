import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { parleyCommand } from '#channel-kit/own-commands.ts';

/** An entry in the one list of served files; no path of a request ever reaches the file system. */
type PageFile = {
  readonly url: string;
  readonly path: string;
  readonly type: string;
  fill?(text: string): string;
};

const script = 'text/javascript; charset=utf-8';
const pageFiles: readonly (readonly [url: string, name: string, type: string])[] = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/page/style.css', 'style.css', 'text/css; charset=utf-8'],
  ['/page/icon.svg', 'icon.svg', 'image/svg+xml'],
  ['/page/app.webmanifest', 'app.webmanifest', 'application/manifest+json'],
  ...[
    'main',
    'api',
    'attachments',
    'chat',
    'chat-view',
    'children-view',
    'command-menu',
    'connection',
    'copy-button',
    'duration',
    'lanes-view',
    'markdown',
    'notices-view',
    'outbox',
    'own-command',
    'panels',
    'random-id',
    'rich-text',
    'sessions-view',
    'sign-in-view',
    'sign-ins-view',
    'status-view',
    'text-blocks',
    'undelivered-view',
    'why-view',
  ].map((name) => [`/page/${name}.js`, `${name}.js`, script] as const),
];

/** Serves the page with this installation's command in it, its modules, and their two libraries under `/vendor/`. */
export function servePage(app: FastifyInstance): void {
  const pageDir = fileURLToPath(new URL('page/', import.meta.url));
  const files: readonly PageFile[] = [
    ...pageFiles.map(([url, name, type]) => ({
      ...{ url, path: `${pageDir}/${name}`, type },
      ...(url === '/' && { fill: (text: string) => text.replace('{parley}', parleyCommand) }),
    })),
    // The terminal shares it.
    {
      url: '/client/conversation.js',
      path: fileURLToPath(new URL('../client/conversation.js', import.meta.url)),
      type: script,
    },
    { url: '/vendor/preact.js', path: vendorPath('preact'), type: script },
    { url: '/vendor/htm.js', path: vendorPath('htm'), type: script },
  ];
  for (const file of files) serveFile(app, file);
}

function vendorPath(name: string): string {
  return fileURLToPath(import.meta.resolve(name));
}

function serveFile(app: FastifyInstance, file: PageFile): void {
  app.get(file.url, { config: { access: 'public', call: 'none' } }, async (request, reply) => {
    const written = await readFile(file.path);
    const bytes = file.fill === undefined ? written : Buffer.from(file.fill(written.toString('utf8')));
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
    reply.header('cache-control', 'no-cache').header('etag', etag);
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(file.type).send(bytes);
  });
}
