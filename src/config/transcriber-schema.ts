/** The settings of what writes voice messages down. */
import { z } from 'zod';
import type { Secret } from './secret.ts';

/** Either a server or a local model. */
export const transcriber = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "isn't an http or https address" })
      .exactOptional()
      .describe(
        "Address of a server that writes voice messages down, OpenAI's or compatible, such as http://127.0.0.1:8000/v1; of whisper.cpp's, the complete one.",
      ),
    model: z.string().min(1).max(200).exactOptional().describe('The model that the server is to use.'),
    keyEnv: z
      .string()
      .regex(/^\w{1,100}$/, "isn't a variable's name, for example OPENAI_API_KEY")
      .exactOptional()
      .describe("Variable of the server's key."),
    folder: z
      .string()
      .min(1)
      .exactOptional()
      .describe('Instead of a server: folder of a model for sherpa-onnx-node, which you install.'),
    language: z
      .string()
      .regex(/^[a-z]{2,3}(?:-\w{2,8})?$/, "isn't a language such as en or de")
      .exactOptional()
      .describe('The language that is spoken; default: it is recognised.'),
    timeoutMs: z
      .int()
      .min(1_000)
      .max(600_000)
      .default(60_000)
      .describe('Longest time for one voice message, in ms.'),
    echo: z
      .enum(['dm', 'always', 'off'])
      .default('dm')
      .describe('Where its sender is shown what was understood.'),
  })
  .refine(({ url, folder }) => (url === undefined) !== (folder === undefined), {
    error: 'needs either url or folder',
  });

/** A transcriber with its key. */
export type TranscriberSettings = Readonly<z.output<typeof transcriber>> & { readonly key?: Secret };
