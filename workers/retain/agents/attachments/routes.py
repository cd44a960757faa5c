"""The routes of attachments: upload a file, list, read and delete those that there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator, Field

from retain.agents.attachments.shown import AttachmentsJson
from retain.agents.context import AgentsContext
from retain.attachments.attachment import MAX_BYTES, Attachment, Readers
from retain.attachments.media_types import IMAGES, PDF
from retain.attachments.store import NewAttachment
from retain.errors import Forbidden, InvalidInput
from retain.errors.codes import Code
from retain.http import Request, Response, json_response
from retain.identifiers import check_id, check_user_id
from retain.routing.queries import PageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, StreamedBody, TypedRequest
from retain.routing.route import Answer, Resource, Route

SERVED: dict[str, str] = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-store",
}
"""With what a content is served, so that a browser neither guesses its type, nor runs anything in it, nor keeps it."""
_User = Annotated[str, AfterValidator(check_user_id)]


class UploadQuery(QueryModel):
    """What is uploaded."""

    name: str | None = Field(default=None, description="the file's name; by default one after its media type")
    user: _User | None = Field(
        default=None,
        description="whose it is: only runs for this user may name it; a user's token always uploads its own",
    )


class AttachmentsQuery(PageQuery):
    """Which attachments to list."""

    user: _User | None = Field(default=None, description="only this user's")


async def upload_attachment(
    context: AgentsContext, request: TypedRequest[AsyncIterator[bytes], UploadQuery]
) -> Response:
    """Upload a file that runs may name."""
    http, query = request.http, request.query
    bound = http.bound
    if bound is not None and query.user not in (None, bound.user_id):
        raise Forbidden("the token speaks for another user", code="token_not_allowed")
    user_id = query.user if bound is None else bound.user_id
    length = http.headers.get("content-length", "")
    if not length.isdecimal():
        raise InvalidInput("an upload announces its size in the header content-length", code="length_required")
    new = NewAttachment(query.name, http.headers.get("content-type", ""), int(length), user_id)
    stored, is_new = await context.attachments.store(request.tenant_id, new, request.body)
    return json_response(stored.to_json(), 201 if is_new else 200)


async def list_attachments(context: AgentsContext, request: TypedRequest[None, AttachmentsQuery]) -> Response:
    """List a tenant's attachments, the newest first."""
    query, bound = request.query, request.http.bound
    user_id = query.user if bound is None else bound.user_id
    readers = Readers(all=True) if user_id is None else Readers(user_id, own=True)
    before = None if query.cursor is None else _cursor(query.cursor)
    page = await context.attachments.page(request.tenant_id, readers, before=before, limit=query.limit)
    return json_response({"attachments": [one.to_json() for one in page.attachments], "cursor": page.cursor})


async def show_attachment(context: AgentsContext, request: PathRequest) -> Response:
    """Return what is known of an attachment."""
    return json_response((await _found(context, request)).to_json())


async def download_attachment(context: AgentsContext, request: PathRequest) -> Response:
    """Return the content of an attachment."""
    found = await _found(context, request)
    content = await context.attachments.open(request.tenant_id, found.id)
    media_type = found.media_type if found.attached.kind != "text" else "text/plain; charset=utf-8"
    headers = {
        **SERVED,
        "content-type": media_type,
        "content-length": str(found.bytes),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
    }
    return Response(200, b"", headers, content=content)


async def delete_attachment(context: AgentsContext, request: PathRequest) -> Response:
    """Delete an attachment: no run reads it any more."""
    await context.attachments.delete(request.tenant_id, request.path["attachment_id"], _readers(request.http))
    return Response(204, "")


async def _found(context: AgentsContext, request: PathRequest) -> Attachment:
    readers = _readers(request.http)
    return await context.attachments.get(request.tenant_id, request.path["attachment_id"], readers)


def _readers(http: Request) -> Readers:
    return Readers(all=True) if http.bound is None else Readers(http.bound.user_id, own=True)


def _cursor(text: str) -> str:
    try:
        return check_id(text)
    except InvalidInput as error:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor") from error


_ATTACHMENTS = "/v1/agents/{tenant}/attachments"
_ATTACHMENT = f"{_ATTACHMENTS}/{{attachment_id}}"
_OF_ONE: tuple[Code, ...] = ("no_such_attachment", "invalid_id")
RESOURCE: Resource[AgentsContext] = Resource(
    "Attachments",
    (
        Route(
            "POST",
            _ATTACHMENTS,
            upload_attachment,
            name="create_attachment",
            needs="operator",
            scope="runs",
            for_users=True,
            body=StreamedBody("application/octet-stream"),
            takes="the file itself",
            headers={"content-type": "the file's media type; images and PDFs are recognised without one"},
            query=QueryString(UploadQuery),
            answers=(
                Answer(201, "[the attachment](attachments.md)", model=Attachment),
                Answer(200, "the attachment of an earlier upload of the same file", model=Attachment),
            ),
            errors=(
                "attachment_too_large",
                "empty_content",
                "invalid_attachment_name",
                "invalid_content",
                "invalid_query",
                "invalid_user",
                "length_required",
                "media_type_mismatch",
                "token_not_allowed",
                "too_many_uploads",
                "unsupported_media_type",
            ),
            max_body_bytes=MAX_BYTES,
        ),
        Route(
            "GET",
            _ATTACHMENTS,
            list_attachments,
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(AttachmentsQuery),
            answers=(Answer(200, '`{"attachments", "cursor"}`, the newest first', model=AttachmentsJson),),
            errors=("invalid_query", "invalid_user", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            _ATTACHMENT,
            show_attachment,
            name="get_attachment",
            needs="viewer",
            scope="runs",
            for_users=True,
            answers=(Answer(200, "[the attachment](attachments.md)", model=Attachment),),
            errors=_OF_ONE,
        ),
        Route(
            "GET",
            f"{_ATTACHMENT}/content",
            download_attachment,
            needs="viewer",
            scope="runs",
            for_users=True,
            answers=(
                Answer(
                    200,
                    "the file itself, of its media type; text as `text/plain`",
                    media_types=(*IMAGES, PDF, "text/plain"),
                ),
            ),
            errors=_OF_ONE,
        ),
        Route(
            "DELETE",
            _ATTACHMENT,
            delete_attachment,
            needs="operator",
            scope="runs",
            for_users=True,
            answers=(Answer(204, "it is deleted"),),
            errors=_OF_ONE,
        ),
    ),
    about="Files that runs bring to their models: see [attachments](attachments.md).",
)
