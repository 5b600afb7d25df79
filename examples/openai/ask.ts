import OpenAI from 'openai';

// PARLEY_API_TOKEN: from `./bin/parley.mjs tokens create "my script" --scopes chat`.
const { PARLEY_URL = 'http://127.0.0.1:7411', PARLEY_API_TOKEN: apiKey } = process.env;
const client = new OpenAI({ baseURL: `${PARLEY_URL}/v1`, apiKey: apiKey ?? '' });
const stream = await client.chat.completions.create(
  {
    model: 'main',
    user: 'shopping',
    stream: true,
    messages: [{ role: 'user', content: process.argv[2] ?? 'Hello!' }],
  },
  // A repeated call with the same key never starts a second turn.
  { idempotencyKey: crypto.randomUUID() },
);
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '');
