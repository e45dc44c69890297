"""How the messages of a conversation leave in a document, and come back out of it.

Owns what of a message a document holds, and when a conversation of a document is there already:
when its owner still has one of its id with every message of it, unchanged. What was added since is
no reason for a second one, nor is another name.
"""

from chatserve.gateway.conversation_reading import ConversationReading
from chatserve.gateway.ids import new_id
from chatserve.identity import Owner
from chatserve.protocol.conversation_archive import ArchivedConversation, ArchivedItem
from chatserve.store.session_store import Sessions
from chatserve.store.sessions import Message, MessageStatus


def archived_item(message: Message) -> ArchivedItem:
    return ArchivedItem.model_validate(
        {
            "id": message.message_id,
            "parent_id": message.parent_id,
            "role": message.role,
            "text": message.content,
            "created_at": message.created_at,
            "status": message.status.value,
            "continues": message.continues,
        }
    )


def new_messages(archived: ArchivedConversation) -> list[Message]:
    """Return the messages of a checked conversation under new ids."""
    new_ids = {item.id: new_id("msg_") for item in archived.items}
    return [
        Message(
            new_ids[item.id],
            item.role,
            item.text,
            item.created_at,
            status=MessageStatus(item.status),
            parent_id=new_ids[item.parent_id] if item.parent_id else None,
            continues=item.continues,
        )
        for item in archived.items
    ]


async def is_there(
    sessions: Sessions,
    conversations: ConversationReading,
    owner: Owner,
    archived: ArchivedConversation,
) -> bool:
    """Return whether an owner has all that a document says of a conversation."""
    session = await sessions.get(archived.id)
    if session is None or session.owner != owner:
        return False
    wanted = {item.id: item for item in archived.items}
    conversation = await conversations.open(owner, archived.id)
    stored = [name for name in conversation.outline.all() if name in wanted]
    if len(stored) < len(wanted):
        return False
    async for piece in conversation.pieces(stored):
        if any(archived_item(message) != wanted[message.message_id] for message in piece):
            return False
    return True
