import type { IncomingMessage, ServerResponse } from 'node:http';
import { Bus } from '@ambit/bus';
import { Fault, mcpBroker } from '@ambit/contracts';
import { LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { callbackOf } from './authorization.routes.js';
import { SignIns } from './sign-in.service.js';
import { CALLBACK_PATH, CLIENT_PATH, PublicUrl } from './public-url.js';

const FORM_BYTES = 32 * 1024;
const VIA = { via: { kind: 'system', id: 'sign-in-page' } } as const;
type Callback = ReturnType<typeof callbackOf>;

/**
 * What a browser sees of a sign-in: where the authorization server sends it back to, and our document for authorization servers. The
 * person is asked before anything is finished: whoever was lured to another's sign-in reads there whom their account would serve.
 */
@Injectable()
export class SignInPages {
  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(PublicUrl) private readonly url: PublicUrl,
    @Inject(SignIns) private readonly signIns: SignIns,
    @Inject(LOG) private readonly log: Logger,
  ) {}

  /** Middleware: takes the two paths of sign-ins, passes on the rest. */
  readonly handle = (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://ambit');
    if (pathname === CLIENT_PATH && request.method === 'GET' && this.url.client !== null) return this.client(response, this.url.client);
    if (pathname !== CALLBACK_PATH) return next();
    this.callback(request, search).then(
      (shown) => page(response, shown),
      (error: unknown) => page(response, this.failure(error)),
    );
  };

  private client(response: ServerResponse, id: string): void {
    const redirect = this.url.callback;
    response.writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
    });
    response.end(
      JSON.stringify({
        client_id: id,
        client_name: 'Ambit',
        client_uri: this.url.base.href,
        redirect_uris: [redirect],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        application_type: 'web',
        token_endpoint_auth_method: 'none',
      }),
    );
  }

  private async callback(request: IncomingMessage, search: string): Promise<Page> {
    if (!this.url.isOurs(request.headers.host)) return refused(421, 'This address is not one of Ambit’s own.');
    if (request.method === 'GET') return this.ask(callbackOf(new URL(this.url.callback + search), this.url.callback));
    if (request.method !== 'POST') return refused(405, 'Open this address in a browser.');
    const site = request.headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return refused(403, 'The answer came from another page.');
    const form = await readForm(request);
    return this.finish(callbackOf(new URL(`${this.url.callback}?${form}`), this.url.callback));
  }

  private async ask(answer: Callback): Promise<Page> {
    const { slug, subject, issuer } = await this.bus.call(mcpBroker.describeAuthorization, { state: answer.state }, VIA);
    const whose = subject === 'shared' ? 'everybody who uses this server' : subject;
    return {
      status: 200,
      title: `Sign in to ${slug}?`,
      text: `Your account at ${issuer} will serve ${whose} in Ambit, for the server ${slug}. Go on only if you began this yourself.`,
      fields: answer,
    };
  }

  private async finish(answer: Callback): Promise<Page> {
    const { slug, subject } = await this.signIns.finish(answer, VIA);
    return { status: 200, title: `Signed in to ${slug}`, text: `Ambit has the credentials for ${subject}. You can close this page.` };
  }

  private failure(error: unknown): Page {
    if (!(error instanceof Fault) || error.code === 'INTERNAL') {
      this.log.error({ error }, 'a sign-in could not be finished');
      return refused(500, 'Something went wrong here. Begin the sign-in again.');
    }
    const { data } = error;
    const reason =
      typeof data === 'object' && data !== null && 'reason' in data && typeof data.reason === 'string' ? data.reason : error.message;
    return refused(error.status, `${reason}.`);
  }
}

interface Page {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  /** Sent with the one button of the page. */
  readonly fields?: Callback;
}

const refused = (status: number, text: string): Page => ({ status, title: 'Not signed in', text });

async function readForm(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    if (!Buffer.isBuffer(part)) continue;
    size += part.byteLength;
    if (size > FORM_BYTES) throw new Error('the form is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function page(response: ServerResponse, { status, title, text, fields }: Page): void {
  const inputs = Object.entries(fields ?? {}).map(([name, value]) => `<input type="hidden" name="${name}" value="${escape(value)}">`);
  const form =
    fields === undefined ? '' : `<form method="post" action="${CALLBACK_PATH}">${inputs.join('')}<button>Sign in</button></form>`;
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(title)}</title><h1>${escape(title)}</h1><p>${escape(text)}</p>${form}</html>`;
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    // The address holds the code: it goes to no other page, and no page of others can hold this one.
    'content-security-policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
