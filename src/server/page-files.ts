import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { operations } from '../operations/list.ts';

/** An entry in the one list of served files; no path of a request ever reaches the file system. */
type PageFile = {
  readonly url: string;
  readonly type: string;
  readonly read: () => Promise<string | Buffer>;
};

const script = 'text/javascript; charset=utf-8';
/** The page's modules. */
const modules = [
  'main',
  'api',
  'approvals-view',
  'attachments',
  'chat',
  'chat-view',
  'children-view',
  'command-menu',
  'connection',
  'copy-button',
  'file-view',
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
  'subtask-view',
  'task-graph',
  'task-view',
  'tokens-view',
  'text-blocks',
  'undelivered-view',
  'why-view',
];

/** Those that the terminal shares. */
const clientModules = ['conversation', 'text-piece', 'child-facts', 'duration', 'file-facts', 'task-facts'];

/** Serves the page, its modules, and their libraries under `/vendor/`. */
export function servePage(app: FastifyInstance): void {
  const page = new URL('page/', import.meta.url);
  const client = new URL('../client/', import.meta.url);
  const methods = pageMethods();
  const files: readonly PageFile[] = [
    { url: '/', type: 'text/html; charset=utf-8', read: () => indexOf(page) },
    fileAt('/page/about.html', new URL('about.html', page), 'text/html; charset=utf-8'),
    fileAt('/page/style.css', new URL('style.css', page), 'text/css; charset=utf-8'),
    fileAt('/page/icon.svg', new URL('icon.svg', page), 'image/svg+xml'),
    fileAt('/page/app.webmanifest', new URL('app.webmanifest', page), 'application/manifest+json'),
    ...modules.map((name) => fileAt(`/page/${name}.js`, new URL(`${name}.js`, page))),
    { url: '/page/operations.js', type: script, read: async () => methods },
    ...clientModules.map((name) => fileAt(`/client/${name}.js`, new URL(`${name}.js`, client))),
    fileAt('/vendor/preact.js', new URL(import.meta.resolve('preact'))),
    fileAt('/vendor/htm.js', new URL(import.meta.resolve('htm'))),
    // Found when it is asked for: the page loads it for the first graph.
    { url: '/vendor/dagre.js', type: script, read: async () => readFile(dagreFile()) },
  ];
  for (const file of files) serveFile(app, file);
}

function dagreFile(): URL {
  return new URL(import.meta.resolve('@dagrejs/dagre'));
}

/** Returns a module with the method of each operation that the page may call, by name. */
function pageMethods(): string {
  const callable = operations.filter(({ right }) => right === 'owner');
  const methods = Object.fromEntries(callable.map(({ name, method }) => [name, method]));
  return `export const methods = ${JSON.stringify(methods)};\n`;
}

/** Reads the page, and names this installation's command in it. */
async function indexOf(page: URL): Promise<string> {
  const text = await readFile(new URL('index.html', page), 'utf8');
  return text.replace('{parley}', parleyCommand);
}

function fileAt(url: string, file: URL, type = script): PageFile {
  return { url, type, read: () => readFile(file) };
}

function serveFile(app: FastifyInstance, file: PageFile): void {
  app.get(file.url, { config: { access: 'public', call: 'none' } }, async (request, reply) => {
    const content = await file.read();
    const etag = `"${createHash('sha256').update(content).digest('base64url')}"`;
    reply.header('cache-control', 'no-cache').header('etag', etag);
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type(file.type).send(content);
  });
}
