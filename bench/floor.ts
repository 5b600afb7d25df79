/**
 * The bare floor that Parley is compared with: grammY, Anthropic's SDK, a promise chain per chat and the
 * whole history in memory. Nothing is durable: what it costs is what any bot on these libraries costs.
 */
import Anthropic from '@anthropic-ai/sdk';
import { Bot } from 'grammy';

const { TELEGRAM_BOT_TOKEN: token, TELEGRAM_API_ROOT: apiRoot, ANTHROPIC_BASE_URL: baseURL } = process.env;
if (!token || !apiRoot || !baseURL) throw new Error('the floor is started by bench/main.ts');

const bot = new Bot(token, { client: { apiRoot } });
const anthropic = new Anthropic({ baseURL, maxRetries: 0 });
const histories = new Map<number, Anthropic.MessageParam[]>();
const chains = new Map<number, Promise<void>>();

async function answer(chatId: number, text: string): Promise<void> {
  const history = histories.get(chatId) ?? [];
  histories.set(chatId, history);
  history.push({ role: 'user', content: text });
  const stream = await anthropic.messages.create({
    model: 'claude-sonnet-5-5',
    max_tokens: 8192,
    messages: history,
    stream: true,
  });
  let said = '';
  for await (const event of stream) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') said += event.delta.text;
  }
  history.push({ role: 'assistant', content: said });
  await bot.api.sendMessage(chatId, said);
}

bot.on('message:text', (context) => {
  const { chat, message } = context;
  const turn = (chains.get(chat.id) ?? Promise.resolve()).then(() => answer(chat.id, message.text));
  chains.set(
    chat.id,
    turn.catch((error: unknown) => console.error(error)),
  );
});

void bot.start({ onStart: () => console.log('ready') });
