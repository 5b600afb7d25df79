/**
 * Reads the requests of OpenAI's API. Only the last user message counts, since the conversation is kept here; what
 * can't be done as asked is refused with a sentence, and settings of the model are ignored, as the agent has its own.
 */
import { z } from 'zod';

/** The contents of a request. */
export type OpenAiAsk = {
  readonly model: string;
  readonly conversation: string | undefined;
  /** The id of the response that it continues. */
  readonly after: string | undefined;
  readonly text: string;
  readonly images: readonly Buffer[];
  readonly isStream: boolean;
  /** Whether a stream of chunks ends with the usage. */
  readonly hasUsage: boolean;
};

/** Why a request isn't valid: a sentence for people, the member that it is about, and a code of OpenAI's. */
export class BadRequest {
  readonly message: string;
  readonly param: string | null;
  readonly code: string;
  constructor(message: string, param: string | null = null, code = 'invalid_request') {
    this.message = message;
    this.param = param;
    this.code = code;
  }
}

/** The longest message that is read, UTF-16 units. */
const maxTextLength = 100_000;
const maxImages = 10;

const id = z.string().min(1).max(200);
const unknownPart = z.looseObject({ type: z.string() });
const part = z.union([
  z.looseObject({ type: z.enum(['text', 'input_text', 'output_text']), text: z.string() }),
  z.looseObject({
    type: z.enum(['image_url', 'input_image']),
    image_url: z.union([z.string(), z.looseObject({ url: z.string() })]),
  }),
  unknownPart,
]);
const message = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: z.union([z.string(), z.array(part), z.null()]).optional(),
});

/** Members of both kinds of requests; anything else is ignored. */
const common = {
  model: z.string().min(1).max(200),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  conversation: z.union([id, z.looseObject({ id })]).nullish(),
  user: z.string().max(200).nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  n: z.int().nullish(),
  background: z.boolean().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
};

/** Body of `POST /v1/chat/completions`. */
export const chatRequest = z.looseObject({ ...common, messages: z.array(message).min(1) });

/** Body of `POST /v1/responses`. */
export const responseRequest = z.looseObject({
  ...common,
  input: z.union([z.string(), z.array(message).min(1)]),
  previous_response_id: id.nullish(),
});

type Part = z.output<typeof part>;
type Message = z.output<typeof message>;

/** Reads a body of either kind. `named`: the conversation that a header names. */
export function readAsk(
  kind: 'chat' | 'response',
  body: unknown,
  named: string | undefined,
): OpenAiAsk | BadRequest {
  const parsed = (kind === 'chat' ? chatRequest : responseRequest).safeParse(body);
  if (!parsed.success) return describeIssue(parsed.error);
  const request = parsed.data;
  const unsupported = findUnsupported(request);
  if (unsupported) return unsupported;
  // The schema that fits the kind has checked them.
  const {
    messages,
    input,
    previous_response_id: after,
  } = request as {
    readonly messages?: readonly Message[];
    readonly input?: string | readonly Message[];
    readonly previous_response_id?: string | null;
  };
  const content = readContent(messages ?? input ?? [], kind === 'chat' ? 'messages' : 'input');
  if (content instanceof BadRequest) return content;
  const { model, conversation, user, stream, stream_options: options } = request;
  const own = typeof conversation === 'object' ? conversation?.id : conversation;
  if (own && after)
    return new BadRequest('Give conversation or previous_response_id, not both.', 'previous_response_id');
  return {
    ...{ model, ...content },
    conversation: own ?? named ?? (user || undefined),
    after: after ?? undefined,
    isStream: stream ?? false,
    hasUsage: options?.include_usage ?? false,
  };
}

function describeIssue({ issues: [issue] }: z.ZodError): BadRequest {
  const path = issue?.path.join('.') ?? '';
  return new BadRequest(
    path === '' ? 'The body is no JSON object.' : `“${path}” isn't valid: ${issue?.message}.`,
    path,
  );
}

const noTools =
  'The agents of this Parley use their own tools and can’t call yours. Leave the member out; Parley’s configuration gives an agent its tools.';

function findUnsupported(request: z.output<z.ZodObject<typeof common>>): BadRequest | undefined {
  const { tools, functions, n, background, response_format: format, text } = request;
  if (tools?.length) return new BadRequest(noTools, 'tools', 'unsupported_parameter');
  if (functions?.length) return new BadRequest(noTools, 'functions', 'unsupported_parameter');
  const no = (words: string, param: string) => new BadRequest(words, param, 'unsupported_parameter');
  if (n && n !== 1) return no('An agent gives one answer: leave n out.', 'n');
  if (background)
    return no(
      'Background calls aren’t supported: a run continues anyway if its caller disconnects.',
      'background',
    );
  if ((format ?? text?.format ?? { type: 'text' }).type !== 'text')
    return no(
      'An agent answers in plain text: ask for a format in your message.',
      format ? 'response_format' : 'text',
    );
  return undefined;
}

type Content = Pick<OpenAiAsk, 'text' | 'images'>;

function readContent(input: string | readonly Message[], param: string): Content | BadRequest {
  const messages: readonly Message[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const last = messages.at(-1);
  if (last?.role === 'tool' || last?.role === 'function' || last?.type?.endsWith('_output'))
    return new BadRequest(noTools, param, 'unsupported_parameter');
  const said = messages.findLast(({ role }) => role === 'user');
  if (!said) return new BadRequest('There is no message with the role “user”.', param);
  const { content } = said;
  if (typeof content === 'string') return checkContent({ text: content, images: [] }, param);
  const texts: string[] = [];
  const images: Buffer[] = [];
  for (const one of content ?? []) {
    const read = readPart(one);
    if (read instanceof BadRequest) return read;
    if (typeof read === 'string') texts.push(read);
    else images.push(read);
  }
  return checkContent({ text: texts.join('\n'), images }, param);
}

function checkContent({ text, images }: Content, param: string): Content | BadRequest {
  if (text.trim() === '' && images.length === 0)
    return new BadRequest('The last user message is empty.', param);
  if (text.length > maxTextLength)
    return new BadRequest(
      `The last user message is longer than ${maxTextLength} characters.`,
      param,
      'string_above_max_length',
    );
  if (images.length > maxImages) return new BadRequest(`A message may have ${maxImages} images.`, param);
  return { text: text.toWellFormed(), images };
}

function readPart(one: Part): string | Buffer | BadRequest {
  if ('text' in one && typeof one.text === 'string') return one.text;
  if (!('image_url' in one))
    return new BadRequest(
      `Parts of the type “${one.type.slice(0, 40)}” aren't supported: send text, and images as data URLs.`,
      'content',
      'unsupported_parameter',
    );
  const { image_url: image } = one;
  return readImage(typeof image === 'string' ? image : (image as { readonly url: string }).url);
}

/** Reads a data URL. An address isn't fetched: this server reaches places that its caller may not. */
function readImage(url: string): Buffer | BadRequest {
  const [, data] = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/\s]+={0,2}\s*)$/.exec(url) ?? [];
  if (data !== undefined) return Buffer.from(data, 'base64');
  return new BadRequest(
    url.startsWith('data:')
      ? 'The image isn’t a base64 data URL of the form data:image/png;base64,….'
      : 'Images at an address aren’t fetched: send them as data URLs.',
    'image_url',
    'invalid_image_url',
  );
}
