/** A bot of a few lines on grammY. */
import { Bot } from 'grammy';
import { hear, required } from './turns.ts';

const bot = new Bot(required('TELEGRAM_BOT_TOKEN'), { client: { apiRoot: required('TELEGRAM_API_ROOT') } });

bot.on('message:text', ({ chat, message }) => {
  hear(String(chat.id), message.text, (text) => bot.api.sendMessage(chat.id, text));
});

void bot.start({ onStart: () => console.log('ready') });
