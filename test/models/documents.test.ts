/** PDFs at the model servers: as documents where the model reads them, as their text elsewhere and after a refusal. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LlmProvider, ModelRequest } from '#contracts/model.ts';
import { createAnthropicProvider } from '../../src/models/anthropic.ts';
import { createOpenAiProvider } from '../../src/models/openai/openai.ts';
import { createPluginProvider } from '../../src/models/plugin-provider.ts';
import { pdfOf } from '../media/some-files.ts';
import { startAnthropicServer } from '../platforms/anthropic/server.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { startOpenAiServer } from '../platforms/openai/server.ts';
import { aRequest, eventsOf, failureIn, textIn } from './builders.ts';

const base64 = pdfOf('Rent is due on Monday').toString('base64');
const document = { type: 'document', name: 'rent', base64, pages: 1, text: 'the text of rent.pdf' } as const;
const asking = aRequest({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'When?' }, document] }],
});

type Access = {
  readonly model: string;
  readonly takesDocuments?: boolean;
  readonly clock?: { now(): number };
};

/** A model server of each kind, and a model whose PDFs it reads unless the test says otherwise. */
const kinds = {
  Anthropic: { start: startAnthropicServer, create: createAnthropicProvider, reader: 'claude-sonnet-5-5' },
  OpenAI: { start: startOpenAiServer, create: createOpenAiProvider, reader: 'gpt-5' },
} as const;

async function open(kind: keyof typeof kinds, access: Partial<Access> = {}) {
  const { start, create, reader } = kinds[kind];
  const server = await start();
  onTestFinished(server.close);
  const provider = create({ apiKeys: ['test-key'], model: reader, baseUrl: server.url, ...access });
  const bodies = () => server.requests.map(({ body }) => JSON.stringify(body));
  /** For each request: whether it had the document itself, and whether it had its text. */
  const shown = () => bodies().map((body) => [body.includes(base64), body.includes(document.text)]);
  /** Refuses every document, and answers everything else. */
  const refuse = (refusal: Reply) =>
    server.script((body: unknown) => (JSON.stringify(body).includes(base64) ? refusal : { text: 'Monday.' }));
  return { server, provider, shown, refuse };
}

const [itself, text] = [
  [true, false],
  [false, true],
];

describe('a PDF in a request', () => {
  it('sends an OpenAI-compatible server a file part with a name and a data address', async () => {
    const { server, provider } = await open('OpenAI');
    await eventsOf(provider, asking);
    const file = { filename: 'rent.pdf', file_data: `data:application/pdf;base64,${base64}` };
    expect(server.requests.at(-1)?.body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'When?' },
          { type: 'file', file },
        ],
      },
    ]);
  });

  it.each([
    ['a model of an unknown server', 'OpenAI', { model: 'some-model' }, text],
    ['a model that is set not to', 'OpenAI', { takesDocuments: false }, text],
    ['a model that is set to', 'OpenAI', { model: 'some-model', takesDocuments: true }, itself],
    ['a Claude model', 'Anthropic', {}, itself],
    ['a Claude model that is set not to', 'Anthropic', { takesDocuments: false }, text],
  ] as const)(
    'shows the document itself only to a model that reads PDFs: %s',
    async (_, kind, access, expected) => {
      const { provider, shown } = await open(kind, access);
      await eventsOf(provider, asking);
      expect(shown()).toEqual([expected]);
    },
  );

  it.each([
    ['Anthropic', 400, 'documents are not supported by this model'],
    ['Anthropic', 400, "messages.0.content.1: Input tag 'document' found using 'type' does not match any"],
    ['Anthropic', 400, 'The PDF specified was not valid.'],
    ['Anthropic', 400, 'The PDF specified is password protected.'],
    ['Anthropic', 400, 'A maximum of 100 PDF pages may be provided.'],
    ['OpenAI', 400, "Invalid value: 'file'. Supported values are: 'text', 'image_url', and 'refusal'."],
    ['OpenAI', 400, 'Unknown part type: file'],
    [
      'OpenAI',
      422,
      'Failed to deserialize the JSON body: messages[0]: unknown variant `file`, expected `text`',
    ],
    ['OpenAI', 500, 'Unsupported content part type: "file"'],
    ['OpenAI', 400, 'This model does not support file content types.'],
    ['OpenAI', 404, 'No endpoints found that support file input: files are not supported'],
  ] as const)(
    'sends its text once a server refuses the document, now and later: %s %i %s',
    async (kind, status, message) => {
      const { provider, shown, refuse } = await open(kind);
      refuse({ status, message });
      expect(textIn(await eventsOf(provider, asking))).toBe('Monday.');
      expect(textIn(await eventsOf(provider, asking))).toBe('Monday.');
      expect(shown()).toEqual([itself, text, text]);
    },
  );

  it('shows the document again an hour after a refusal', async () => {
    let now = 0;
    const { provider, shown, refuse } = await open('OpenAI', { clock: { now: () => now } });
    refuse({ status: 400, message: 'Unknown part type: file' });
    for (const at of [0, 3_599_999, 3_600_000]) {
      now = at;
      await eventsOf(provider, asking);
    }
    expect(shown()).toEqual([itself, text, text, itself, text]);
  });

  it('keeps the document in the request if something else is refused', async () => {
    const { server, provider, shown } = await open('OpenAI');
    server.script([{ status: 400, message: 'Your prompt was flagged.' }]);
    expect(failureIn(await eventsOf(provider, asking))).toBeDefined();
    expect(shown()).toEqual([itself]);
  });

  it.each([
    [false, text],
    [true, itself],
  ] as const)(
    "shows a plugin's model the document only if that model says it reads PDFs: %s",
    async (takes, expected) => {
      const asked: ModelRequest[] = [];
      const model = {
        model: () => ({ takesDocuments: takes }),
        send: async (request: ModelRequest) => void asked.push(request),
      } as unknown as LlmProvider;
      const provider = createPluginProvider('own', 'm', () => () => model);
      await provider.send(asking, new AbortController().signal);
      const [body = ''] = asked.map(({ messages }) => JSON.stringify(messages[0]?.content[1]));
      expect([body.includes(base64), body.includes('"type":"text"')]).toEqual(expected);
    },
  );
});
