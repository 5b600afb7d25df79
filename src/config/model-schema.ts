/** The schema of providers and models, as written. */
import { z } from 'zod';
import { identifier } from './agent-schema.ts';

export const httpUrl = z.url({ protocol: /^https?$/, error: "isn't an http:// or https:// address" });

/** The SDKs give up on a server that hasn't started to answer after this long, ms. */
export const longestSilenceMs = 600_000;

const dollarsPerMillion = z.number().min(0).max(10_000);

/** Name of a model: an alias, or `provider/id`. */
export const modelName = z.string().min(1).max(200);

const variableName = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*$/, "isn't the name of a variable, for example WORK_API_KEY");

export const providers = z
  .record(
    identifier,
    z.strictObject({
      kind: z
        .enum(['anthropic', 'openai', 'demo', 'plugin'])
        .exactOptional()
        .describe(
          'API that it speaks. Default: its name if that is one of them, otherwise openai. `plugin`: a plugin provides its models.',
        ),
      baseUrl: httpUrl.exactOptional().describe('Address of its API, for example http://127.0.0.1:11434/v1.'),
      keysEnv: variableName
        .exactOptional()
        .describe('Environment variable with its comma-separated API keys. Default: <NAME>_API_KEY.'),
      headersEnv: variableName
        .exactOptional()
        .describe(
          'Environment variable with headers for this server only: comma-separated name=value pairs.',
        ),
    }),
  )
  .default({})
  .describe('Model servers. Built in: anthropic, openai, openrouter, ollama, demo.');

/** Where spans of runs, model calls and tool calls are sent. */
export const tracing = z
  .strictObject({
    endpoint: httpUrl
      .exactOptional()
      .describe(
        'An OpenTelemetry collector (OTLP over HTTP), for example http://127.0.0.1:4318. Absent = no traces.',
      ),
    headersEnv: variableName
      .default('OTEL_EXPORTER_OTLP_HEADERS')
      .describe('Environment variable with headers for the collector: comma-separated name=value pairs.'),
  })
  .prefault({});

export const models = z
  .record(
    identifier,
    z.strictObject({
      provider: identifier.describe('Name of its provider.'),
      id: z.string().min(1).describe("The model's id at its provider."),
      window: z
        .int()
        .min(1000)
        .max(100_000_000)
        .exactOptional()
        .describe('Context window in tokens, if Parley doesn’t know it.'),
      maxTokens: z
        .int()
        .min(1)
        .max(1_000_000)
        .exactOptional()
        .describe('Longest answer of one call, in tokens. Default: 16,000, at most a quarter of the window.'),
      prices: z
        .strictObject({
          input: dollarsPerMillion,
          output: dollarsPerMillion,
          cacheRead: dollarsPerMillion,
          cacheWrite: dollarsPerMillion,
        })
        .exactOptional()
        .describe('Dollars per million tokens, replacing the built-in prices.'),
      tools: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether to offer it tools. Default: yes, until its server says that it doesn’t support them.',
        ),
      documents: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether it reads PDFs; otherwise it is given their text. Default: for models that Parley knows.',
        ),
      fallbacks: z
        .array(modelName)
        .default([])
        .describe('Models to try, in this order, when it fails; each may be from a different provider.'),
    }),
  )
  .default({})
  .describe('Models under names you choose. A provider/id such as openai/gpt-5-mini needs no entry.');
